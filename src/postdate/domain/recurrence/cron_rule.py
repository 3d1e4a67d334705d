"""When does a cron expression fire?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from cronsim import CronSim

from postdate.domain.recurrence.cron_words import cron_in_words
from postdate.domain.recurrence.crontab import Crontab, crontab
from postdate.domain.recurrence.placing import placed, right_after, shown, wall_floor
from postdate.domain.recurrence.rule import Rule
from postdate.domain.recurrence.seconds import instant_of, seconds_of
from postdate.domain.walltime import check_policy
from postdate.domain.zones import zone
from postdate.errors import InvalidInstant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from postdate.domain.walltime import Fold, Gap

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Cron(Rule):
    """A cron expression, and the IANA zone whose clocks it goes by, as Debian's cron does.

    With a star at the beginning of minute or hour it fires whenever clocks show what it says, the repeated hour
    included. Otherwise it fires at fixed times: once a day each, those that clocks skip right after the gap.
    """

    expr: str
    tz: str
    gap: Gap = "forward"
    fold: Fold = "first"

    def _fired(self, lo: datetime, hi: datetime) -> Iterator[datetime]:
        lo = max(lo, instant_of(seconds_of(lo)))
        latest = lo
        for instant in self._by_walls(lo) if self._crontab.by_wall else self._by_instants(lo):
            if instant > hi:
                return
            if instant > latest:
                latest = instant
                yield instant

    def _by_walls(self, lo: datetime) -> Iterator[datetime]:
        walls = self._walls(wall_floor(lo, self._zone) - _SECOND)
        if self.gap == "reject":
            walls = shown(walls, self._zone)
        return placed(walls, self._zone, fold=self.fold, skipped=right_after(self._zone))

    def _by_instants(self, lo: datetime) -> Iterator[datetime]:
        try:
            for shown_at in CronSim(self._crontab.plain, lo.astimezone(self._zone)):
                yield shown_at.astimezone(UTC)
        except (OverflowError, ValueError):  # the calendar ends
            return

    def _walls(self, after: datetime) -> Iterator[datetime]:
        try:
            yield from CronSim(self._crontab.plain, after)
        except (OverflowError, ValueError):  # the calendar ends
            return

    def _all(self) -> Iterator[datetime]:
        raise InvalidInstant(field="after", rule="is needed: a cron expression has no beginning")

    @cached_property
    def _crontab(self) -> Crontab:
        return crontab(self.expr)

    @cached_property
    def _zone(self) -> ZoneInfo:
        return zone(self.tz)

    def describe(self) -> str:
        """Return the expression in words: `at 09:00 on Monday to Friday`."""
        return cron_in_words(self._crontab.plain)

    def dump(self) -> dict[str, object]:
        """Return the rule as a JSON object."""
        return {"form": "cron", "expr": self.expr, "tz": self.tz, "gap": self.gap, "fold": self.fold}


def cron(expr: str, *, tz: str, gap: Gap = "forward", fold: Fold = "first") -> Cron:
    """Return the rule of a cron expression: five fields, or an alias such as `@daily`, in the IANA zone `tz`.

    Fixed times that clocks skip fire right after the gap, or with `gap="reject"` not that day; of those shown twice
    `fold` takes the first or the second. Where both days are given without a star, either is enough.

    Raises `InvalidRule` (which field, and why), `InvalidZone`, or `InvalidWallTime` for a bad gap or fold.
    """
    check_policy(gap, fold)
    crontab(expr)
    return Cron(expr=expr, tz=zone(tz).key, gap=gap, fold=fold)
