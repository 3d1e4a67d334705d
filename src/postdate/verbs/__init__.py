"""What can be asked of postdate?

Each verb is one synchronous function over a `Kernel`; `postdate.app` offers the very same functions
synchronously and asynchronously.
"""

from __future__ import annotations

from postdate.verbs.change import cancel, post_now, reschedule
from postdate.verbs.endpoints import disabled_endpoints, enable_endpoint
from postdate.verbs.intake import NewAction
from postdate.verbs.read import get, history, list_actions
from postdate.verbs.schedule import schedule, schedule_many
from postdate.verbs.verdict import confirm, dismiss, retry

__all__ = [
    "NewAction",
    "cancel",
    "confirm",
    "disabled_endpoints",
    "dismiss",
    "enable_endpoint",
    "get",
    "history",
    "list_actions",
    "post_now",
    "reschedule",
    "retry",
    "schedule",
    "schedule_many",
]
