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
from postdate.verbs.schedule import schedule, schedule_many
from postdate.verbs.verdict import confirm, dismiss, retry

__all__ = [
    "Hold",
    "NewAction",
    "Release",
    "cancel",
    "clear_quiet_hours",
    "confirm",
    "disabled_endpoints",
    "dismiss",
    "enable_endpoint",
    "ended_pauses",
    "get",
    "held",
    "history",
    "list_actions",
    "pause",
    "paused",
    "plan_for",
    "post_now",
    "quiet_hours",
    "reconcile",
    "release",
    "reschedule",
    "resume",
    "retry",
    "schedule",
    "schedule_many",
    "set_quiet_hours",
]
