"""What can be asked of postdate?

Each verb is one synchronous function over a `Kernel`; `postdate.app` offers the very same functions
synchronously and asynchronously.
"""

from __future__ import annotations

from postdate.verbs.change import cancel, post_now, reschedule
from postdate.verbs.endpoints import disabled_endpoints, enable_endpoint
from postdate.verbs.intake import NewAction
from postdate.verbs.pausing import ended_pauses, pause, paused, resume
from postdate.verbs.planning import plan_for, reconcile
from postdate.verbs.quiet import clear_quiet_hours, quiet_hours, set_quiet_hours
from postdate.verbs.read import get, history, list_actions
from postdate.verbs.releasing import Hold, Release, held, release
from postdate.verbs.rule_terms import UNCHANGED, Recurrence, RuleTerms
from postdate.verbs.rules import create_rule, update_rule
from postdate.verbs.rules_holidays import holidays, set_holidays
from postdate.verbs.rules_preview import Upcoming, preview_rule
from postdate.verbs.rules_reading import get_rule, list_rules, missed, rule_history
from postdate.verbs.rules_single import move_occurrence, override_occurrence, run_now, skip_occurrence
from postdate.verbs.rules_standing import end_rule, pause_rule, resume_rule
from postdate.verbs.schedule import schedule, schedule_many
from postdate.verbs.verdict import confirm, dismiss, retry
from postdate.verbs.zones import ZoneCheck, check_zones, follow_zone, pin_zone

__all__ = [
    "UNCHANGED",
    "Hold",
    "NewAction",
    "Recurrence",
    "Release",
    "RuleTerms",
    "Upcoming",
    "ZoneCheck",
    "cancel",
    "check_zones",
    "clear_quiet_hours",
    "confirm",
    "create_rule",
    "disabled_endpoints",
    "dismiss",
    "enable_endpoint",
    "end_rule",
    "ended_pauses",
    "follow_zone",
    "get",
    "get_rule",
    "held",
    "history",
    "holidays",
    "list_actions",
    "list_rules",
    "missed",
    "move_occurrence",
    "override_occurrence",
    "pause",
    "pause_rule",
    "paused",
    "pin_zone",
    "plan_for",
    "post_now",
    "preview_rule",
    "quiet_hours",
    "reconcile",
    "release",
    "reschedule",
    "resume",
    "resume_rule",
    "retry",
    "rule_history",
    "run_now",
    "schedule",
    "schedule_many",
    "set_holidays",
    "set_quiet_hours",
    "skip_occurrence",
    "update_rule",
]
