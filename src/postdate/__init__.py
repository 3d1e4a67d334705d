"""postdate fires user-scheduled actions: each once, at the right instant, whatever happens in between."""

from __future__ import annotations

from postdate.app import Postdate, SyncVerbs
from postdate.context import Context
from postdate.domain.action import Action, Event, Intent
from postdate.domain.intent import Doubt, Intended, Shift
from postdate.domain.outcome import Deferred, NotSent, Published, Rejected, Skipped, Unconfirmed
from postdate.domain.pause import EndedPause, Pause
from postdate.domain.quiet import QuietHours, WorkspaceQuietHours
from postdate.domain.reconcile import Insert, Keep, Kept, Parent, Replace, Withdraw
from postdate.domain.recurrence import Rule, cron, every, rrule
from postdate.domain.retry import Backoff
from postdate.domain.rule import RecurringRule, RuleOccurrence
from postdate.domain.states import Reason, Status
from postdate.domain.walltime import resolve
from postdate.engine.fulfil import Planned
from postdate.engine.loop import TickReport
from postdate.engine.tally import Reconciled, ReconcileReport
from postdate.errors import (
    ActionNotFound,
    AlreadyPublished,
    AlreadyScheduled,
    DatabaseTimedOut,
    EndpointNotDisabled,
    EngineBroken,
    EngineCancelled,
    EngineStuck,
    IdempotencyConflict,
    Invalid,
    InvalidInstant,
    InvalidPayload,
    InvalidRule,
    InvalidText,
    InvalidWallTime,
    InvalidZone,
    Misconfigured,
    MoveRefused,
    NotConfigured,
    NotFound,
    NotHeld,
    NotPaused,
    OccurrenceNotFound,
    OnHold,
    OutcomesUnwritten,
    OverlapTaken,
    OwnerNotFound,
    PassRunning,
    PostdateError,
    Refused,
    RetriesExhausted,
    RuleMoveRefused,
    RuleNotFound,
    SchemaMismatch,
    SiblingRunning,
    SourceFailed,
    UnknownActionType,
    UnknownSource,
    WebhookHeaderInvalid,
    WebhookOutOfTime,
    WebhookRefused,
    WebhookSignatureWrong,
)
from postdate.providers.builtin import builtin_action_types
from postdate.providers.egress import AddressRefused
from postdate.providers.signing import verify_webhook
from postdate.registry import ActionType
from postdate.settings import Settings
from postdate.sources import Desired, Source, SqlSource
from postdate.store.endpoints import DisabledEndpoint
from postdate.store.heartbeat import Due
from postdate.verbs import UNCHANGED, Hold, NewAction, Release, Upcoming, ZoneCheck

__all__ = [
    "UNCHANGED",
    "Action",
    "ActionNotFound",
    "ActionType",
    "AddressRefused",
    "AlreadyPublished",
    "AlreadyScheduled",
    "Backoff",
    "Context",
    "DatabaseTimedOut",
    "Deferred",
    "Desired",
    "DisabledEndpoint",
    "Doubt",
    "Due",
    "EndedPause",
    "EndpointNotDisabled",
    "EngineBroken",
    "EngineCancelled",
    "EngineStuck",
    "Event",
    "Hold",
    "IdempotencyConflict",
    "Insert",
    "Intended",
    "Intent",
    "Invalid",
    "InvalidInstant",
    "InvalidPayload",
    "InvalidRule",
    "InvalidText",
    "InvalidWallTime",
    "InvalidZone",
    "Keep",
    "Kept",
    "Misconfigured",
    "MoveRefused",
    "NewAction",
    "NotConfigured",
    "NotFound",
    "NotHeld",
    "NotPaused",
    "NotSent",
    "OccurrenceNotFound",
    "OnHold",
    "OutcomesUnwritten",
    "OverlapTaken",
    "OwnerNotFound",
    "Parent",
    "PassRunning",
    "Pause",
    "Planned",
    "Postdate",
    "PostdateError",
    "Published",
    "QuietHours",
    "Reason",
    "ReconcileReport",
    "Reconciled",
    "RecurringRule",
    "Refused",
    "Rejected",
    "Release",
    "Replace",
    "RetriesExhausted",
    "Rule",
    "RuleMoveRefused",
    "RuleNotFound",
    "RuleOccurrence",
    "SchemaMismatch",
    "Settings",
    "Shift",
    "SiblingRunning",
    "Skipped",
    "Source",
    "SourceFailed",
    "SqlSource",
    "Status",
    "SyncVerbs",
    "TickReport",
    "Unconfirmed",
    "UnknownActionType",
    "UnknownSource",
    "Upcoming",
    "WebhookHeaderInvalid",
    "WebhookOutOfTime",
    "WebhookRefused",
    "WebhookSignatureWrong",
    "Withdraw",
    "WorkspaceQuietHours",
    "ZoneCheck",
    "builtin_action_types",
    "cron",
    "every",
    "resolve",
    "rrule",
    "verify_webhook",
]
