"""When does something fire that is to fire again and again?"""

from __future__ import annotations

from postdate.domain.recurrence.calendar_rule import RRule, rrule
from postdate.domain.recurrence.cron_rule import Cron, cron
from postdate.domain.recurrence.interval_rule import Every, every
from postdate.domain.recurrence.record import load
from postdate.domain.recurrence.rule import Rule

__all__ = ["Cron", "Every", "RRule", "Rule", "cron", "every", "load", "rrule"]
