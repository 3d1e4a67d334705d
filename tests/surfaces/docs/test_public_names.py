"""Which names may other code import from `postdate`? Taking one away breaks somebody; adding one is a promise."""

from __future__ import annotations

import inspect

import pytest

import postdate

PROMISED = """
    UNCHANGED
    Action
    ActionNotFound
    ActionType
    AddressRefused
    AlreadyPublished
    AlreadyScheduled
    Backoff
    Context
    DatabaseTimedOut
    Deferred
    Desired
    DisabledEndpoint
    Doubt
    Due
    EndedPause
    EndpointNotDisabled
    EngineBroken
    EngineCancelled
    EngineStuck
    Event
    Hold
    IdempotencyConflict
    Insert
    Intended
    Intent
    Invalid
    InvalidInstant
    InvalidPayload
    InvalidRule
    InvalidText
    InvalidWallTime
    InvalidZone
    Keep
    Kept
    Misconfigured
    MoveRefused
    NewAction
    NotConfigured
    NotFound
    NotHeld
    NotPaused
    NotSent
    OccurrenceNotFound
    OnHold
    OutcomesUnwritten
    OverlapTaken
    OwnerNotFound
    Parent
    PassRunning
    Pause
    Planned
    Postdate
    PostdateError
    Published
    QuietHours
    Reason
    ReconcileReport
    Reconciled
    Recurrence
    RecurringRule
    Refused
    Rejected
    Release
    Replace
    RetriesExhausted
    Rule
    RuleMoveRefused
    RuleNotFound
    RuleOccurrence
    RuleTerms
    SchemaMismatch
    Settings
    Shift
    SiblingRunning
    Skipped
    Source
    SourceFailed
    SqlSource
    Status
    SyncVerbs
    TickReport
    Unconfirmed
    UnknownActionType
    UnknownSource
    Upcoming
    WebhookHeaderInvalid
    WebhookOutOfTime
    WebhookRefused
    WebhookSignatureWrong
    Withdraw
    WorkspaceQuietHours
    ZoneCheck
    builtin_action_types
    cron
    every
    resolve
    rrule
    verify_webhook
"""


def test_the_public_names_are_those_that_were_promised() -> None:
    assert postdate.__all__ == PROMISED.split()


def test_nothing_else_lies_open_beside_them() -> None:
    beside = {
        name for name, value in vars(postdate).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert beside - {"annotations"} == set(postdate.__all__)


@pytest.mark.parametrize("name", postdate.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(postdate, name))
