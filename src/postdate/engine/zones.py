"""When do wall times that mean another instant now take their actions along?

Two things shift a wall time: other rules for a zone, which come with a new tzdata, and an owner who moves to another
zone. The pass looks for owners who moved once a minute, and over everything that is still to come once a day and
whenever the rules in force are newer than those it went by before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

import structlog

from postdate.domain.zones import tzdata_version
from postdate.engine.decided import rename_decided
from postdate.engine.follow import follow
from postdate.engine.shifts import Walk
from postdate.store.passes import last_run, note_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from postdate.domain.intent import Shift, ZonePolicy
    from postdate.engine.shifts import Move
    from postdate.kernel import Kernel
    from postdate.store.passes import LastRun
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

ZONES = "zones"
"""The name of the pass."""

_DAY = timedelta(days=1)
_GIVEN_UP = 2 * _DAY
"""After how long without a look under newer rules those in force here are taken, though they are older."""

_WRITTEN = 200
"""How many actions are replaced in one transaction."""

_TOLD = 20
"""How many problems a report spells out."""

_SEE = "postdate zones check"


@dataclass(frozen=True, kw_only=True)
class ZoneReport:
    """What a run of the pass has found and done."""

    by_rules: bool
    """Whether it went over everything that is still to come, and not only over what belongs to owners who moved."""
    looked: int
    followed: int
    pinned: int
    asked: int
    """How many wait for a person's word."""
    passed_over: int
    """How many somebody else had in hand; the next run looks again."""
    refused: int
    """How many the database refuses to replace: they stay as they are."""
    problems: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class _Noted:
    """What the last runs have left in the database: the newest rules that one went by, and when."""

    tzdata: str = ""
    at: datetime | None = None

    @classmethod
    def read(cls, last: LastRun | None) -> Self:
        state: Mapping[str, Any] = {} if last is None else last.state
        at = state.get("by_rules_at")
        return cls(tzdata=state.get("tzdata", ""), at=None if at is None else datetime.fromisoformat(at))

    def due(self, tzdata: str, now: datetime) -> bool:
        """Whether to go over everything: by newer rules at once, by the same daily, by older ones when they are left.

        Two processes with different rules would else move an action to and fro.
        """
        if self.at is None or tzdata > self.tzdata:
            return True
        age = now - self.at
        return age < timedelta(0) or age >= (_DAY if tzdata == self.tzdata else _GIVEN_UP)

    def state(self) -> dict[str, Any]:
        return {"tzdata": self.tzdata, "by_rules_at": None if self.at is None else self.at.isoformat()}


class ZonePass:
    """The periodic pass."""

    name = ZONES
    interval = timedelta(minutes=1)

    def __init__(self, kernel: Kernel) -> None:
        """Remember nothing yet."""
        self._kernel = kernel
        self._through: frozenset[Move] = frozenset()
        """Owners who moved, and of whose actions none is left to be replaced."""

    async def run_once(self, now: datetime) -> ZoneReport:
        """Look who has moved, over everything if that is due, and replace what follows."""
        kernel, (tzdata, _) = self._kernel, tzdata_version()
        noted = _Noted.read(await kernel.work(lambda tx: last_run(tx, ZONES), read_only=True))
        by_rules = noted.due(tzdata, now)
        walk = Walk(kernel, now=now, by_rules=by_rules, but=frozenset() if by_rules else self._through)
        report = await self._walked(walk, now=now, by_rules=by_rules)
        if by_rules:
            await rename_decided(kernel, now=now)
        self._through = frozenset(walk.moves) if not report.passed_over else frozenset()
        if by_rules and not report.passed_over:
            noted = _Noted(tzdata=tzdata, at=now)
        await kernel.work(lambda tx: note_run(tx, ZONES, at=now, state=noted.state()))
        _tell(report)
        return report

    async def _walked(self, walk: Walk, *, now: datetime, by_rules: bool) -> ZoneReport:
        courses: Counter[ZonePolicy] = Counter()
        followed = refused = 0
        await self._kernel.work(walk.begin, read_only=True)
        while (shifts := await self._kernel.work(walk.following, read_only=True)) is not None:
            courses.update(each.course for each in shifts)
            for some in _sets([each for each in shifts if each.course == "follow"]):
                done, not_done = await follow(self._kernel, some, now=now)
                followed += len(done)
                refused += len(not_done)
        return ZoneReport(
            by_rules=by_rules,
            looked=walk.looked,
            followed=followed,
            pinned=courses["pin"],
            asked=courses["ask"],
            passed_over=courses["follow"] - followed - refused,
            refused=refused,
            problems=walk.problems[:_TOLD],
        )


def rules_gone_by(tx: Transaction) -> str | None:
    """Return the version of the tz database that the pass has gone over everything by; None before it first did."""
    return _Noted.read(last_run(tx, ZONES)).tzdata or None


def _sets(shifts: Sequence[Shift]) -> list[Sequence[Shift]]:
    return [shifts[first : first + _WRITTEN] for first in range(0, len(shifts), _WRITTEN)]


def _tell(report: ZoneReport) -> None:
    if report.followed:
        _log.info("wall times mean other instants now, and their actions follow", actions=report.followed)
    if report.asked:
        _log.warning("wall times mean other instants now: say what becomes of them", actions=report.asked, see=_SEE)
    if report.refused:
        _log.warning("wall times mean other instants now, but cannot be followed", actions=report.refused)
    for problem in report.problems:
        _log.warning("an owner's zone cannot be told", error=problem)
