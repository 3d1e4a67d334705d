"""How fast are rules expanded, and their occurrences made into actions?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dateutil.rrule import rrulestr
from sqlalchemy import delete, text

from postdate.bench.figure import MeasurementFailed, compared
from postdate.bench.goals import goal
from postdate.bench.subject import ACTION_TYPE, TARGET, Post, application, new_action
from postdate.clock import ManualClock, monotonic
from postdate.domain.recurrence import rrule
from postdate.domain.rule import RecurringRule
from postdate.domain.zones import zone
from postdate.engine.expand import Expander
from postdate.store.rules import insert_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from postdate.app import Postdate
    from postdate.bench.figure import Figure
    from postdate.bench.place import Place

    _Asked = tuple[str, datetime, str]
    """The text of an RRULE, the wall time at which it begins, and its zone."""

_NOW = datetime(2027, 5, 12, 12, tzinfo=UTC)
_WINDOW = timedelta(days=14)
_TEXTS = ("FREQ=WEEKLY;BYDAY=TU", "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,WE,FR", "FREQ=MONTHLY;BYDAY=-1FR")
_ZONES = ("America/New_York", "Europe/Lisbon", "Asia/Tokyo", "UTC", "Australia/Sydney")
_WEEKLY = ("FREQ=WEEKLY;BYDAY=TU",)
_TURNS = 10
_MANY = 1_000


def expand_figures(place: Place, *, rows: int, rounds: int) -> Iterator[Figure]:
    """Measure the expansion of rules beside dateutil's, and their becoming actions beside `schedule_many`."""
    for name, age in (("expand_old", timedelta(days=730)), ("expand_fresh", timedelta(days=3))):
        asked = list(_asked(rows, _TEXTS, age=age))
        rates = _in_turns([_ours(*each) for each in asked], [_dateutils(*each) for each in asked])
        yield compared(name, *rates, unit="rules/s", goal=goal(place.kind, name))
    yield compared(
        "materialise",
        *_materialise(place, rules=rows, rounds=rounds),
        unit="actions/s",
        goal=goal(place.kind, "materialise"),
    )


def _asked(count: int, texts: Sequence[str], *, age: timedelta) -> Iterator[_Asked]:
    """Yield rules that began so long ago, each at another minute of the day."""
    for number, written, tz in zip(range(count), cycle(texts), cycle(_ZONES), strict=False):
        begun = (_NOW - age).replace(tzinfo=None, hour=9, minute=number % 60)
        yield written, begun, tz


def _in_turns(
    ours: Sequence[Callable[[], int]], theirs: Sequence[Callable[[], int]]
) -> tuple[list[float], list[float]]:
    """Expand the rules a tenth at a time, and return how many a second each made of it."""
    size = max(1, len(ours) // _TURNS)
    rates: tuple[list[float], list[float]] = [], []
    for start in range(0, len(ours) - size + 1, size):
        found = []
        for rules, kept in ((ours, rates[0]), (theirs, rates[1])):
            some = rules[start : start + size]
            began = monotonic()
            found.append(sum(expanded() for expanded in some))
            kept.append(size / (monotonic() - began))
        if found[0] != found[1]:
            raise MeasurementFailed(f"{found[0]} occurrences were found, and by dateutil {found[1]}")
    return rates


def _ours(written: str, start: datetime, tz: str) -> Callable[[], int]:
    return lambda: sum(1 for _ in rrule(written, start=start, tz=tz).between(_NOW, _NOW + _WINDOW))


def _dateutils(written: str, start: datetime, tz: str) -> Callable[[], int]:
    begun = start.replace(tzinfo=zone(tz))
    return lambda: len(_repeated(written, begun).between(_NOW, _NOW + _WINDOW))


def _repeated(written: str, begun: datetime) -> Any:  # it may be a set of rules, for all that the types know
    return rrulestr(written, dtstart=begun)


def _materialise(place: Place, *, rules: int, rounds: int) -> tuple[list[float], list[float]]:
    app = application(place, concurrency=1, ran=lambda _: None).on(place.url, clock=ManualClock(_NOW))
    app.kernel.names, app.kernel.settings = place.names, place.settings
    rates: tuple[list[float], list[float]] = [], []
    try:
        for _ in range(rounds):
            _empty(place)
            _insert_rules(place, list(_asked(rules, _WEEKLY, age=timedelta(days=730))))
            began = monotonic()
            made = asyncio.run(_expanded(app))
            rates[0].append(made / (monotonic() - began))
            _empty(place)
            began = monotonic()
            _schedule(app, place, made)
            rates[1].append(made / (monotonic() - began))
    finally:
        app.kernel.database.close_sync()
    return rates


async def _expanded(app: Postdate) -> int:
    report = await Expander(app.kernel).run_once(_NOW)
    await app.close()
    if report.failed or not report.materialised:
        raise MeasurementFailed(f"{report.looked} rules became {report.materialised} actions")
    return report.materialised


def _schedule(app: Postdate, place: Place, count: int) -> None:
    for first in range(0, count, _MANY):
        posts = [Post(thing_id=f"post-{number}") for number in range(first, min(first + _MANY, count))]
        app.sync.schedule_many([new_action(place, post, _NOW + _WINDOW) for post in posts])


def _insert_rules(place: Place, asked: Sequence[_Asked]) -> None:
    with place.begun() as tx:
        for number, (written, start, tz) in enumerate(asked):
            payload = Post(thing_id=f"post-{number}").model_dump(mode="json")
            insert_rule(tx, _rule(place, written, start, tz=tz, payload=payload))


def _rule(place: Place, written: str, start: datetime, *, tz: str, payload: dict[str, Any]) -> RecurringRule:
    return RecurringRule(
        id=uuid4(),
        workspace_id=place.workspace,
        user_id=place.user,
        action_type=ACTION_TYPE,
        target_key=TARGET,
        payload_template=payload,
        kind="rrule",
        rrule=written,
        starts_wall=start.isoformat(),
        starts_at=start.replace(tzinfo=UTC),
        tz=tz,
        gap="forward",
        fold="first",
        misfire="once",
        grace=timedelta(hours=1),
        overlap="allow",
        last_materialized_at=_NOW,
        look_at=_NOW,
        created_at=_NOW,
    )


def _empty(place: Place) -> None:
    place.empty()
    with place.begun() as tx:
        for table in (tx.tables.rule_occurrences, tx.tables.recurring_schedules):
            tx.execute(delete(table) if tx.is_sqlite else text(f"truncate {table.fullname}"))
