"""What comes of a rule that somebody decides about while somebody else names the holidays that it keeps?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Postdate, Status
from postdate.clock import ManualClock
from postdate.engine.expand import Expander
from tests.races.racing import race

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from tests.races.racing import Meeting

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
HOLIDAY = "2026-03-10"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def app(postgres_url: str, clock: ManualClock) -> Iterator[Postdate]:
    """An app on PostgreSQL: SQLite lets nobody begin to decide while another writes."""
    app = Postdate(postgres_url, clock=clock)
    app.action("post")(lambda ctx, payload: None)
    yield app
    app.kernel.database.close_sync()


def daily(app: Postdate, connection: Any = None, **kw: Any) -> UUID:
    return app.sync.create_rule("post", {}, cron="0 9 * * *", tz="UTC", connection=connection, **kw).id


def create(app: Postdate, connection: Any) -> None:
    daily(app, connection, holidays="team")


def update(app: Postdate, connection: Any) -> None:
    app.sync.update_rule(app.sync.list_rules()[0].id, holidays="team", connection=connection)


def resume(app: Postdate, connection: Any) -> None:
    app.sync.resume_rule(app.sync.list_rules()[0].id, connection=connection)


def prepare(app: Postdate, decide: Callable[[Postdate, Any], None]) -> None:
    if decide is update:
        daily(app)
    if decide is resume:
        app.sync.pause_rule(daily(app, holidays="team"))


async def days_queued(app: Postdate, clock: ManualClock) -> list[str]:
    """Let the expander come by, and return the days on which something is to fire."""
    clock.advance(MINUTE)
    await Expander(app.kernel).run_once(clock.now())
    queued = await app.list(status=Status.QUEUED)
    await app.close()
    return [f"{each.publish_at:%F}" for each in queued]


@pytest.mark.parametrize("decide", [create, update, resume])
async def test_a_rule_that_was_decided_beside_an_open_naming_of_holidays_keeps_them(
    app: Postdate, clock: ManualClock, decide: Callable[[Postdate, Any], None]
) -> None:
    """Neither sees what the other writes, and neither waits, so that they cannot wait for each other."""
    prepare(app, decide)
    engine = app.kernel.database.sync_engine
    with engine.begin() as naming:
        app.sync.set_holidays("team", [HOLIDAY], connection=naming)
        decide(app, None)
    queued = await days_queued(app, clock)
    assert HOLIDAY not in queued
    assert len(queued) == 13


@pytest.mark.parametrize("decide", [create, update, resume])
async def test_naming_holidays_waits_for_whoever_decides_by_the_old_ones(
    app: Postdate, clock: ManualClock, decide: Callable[[Postdate, Any], None]
) -> None:
    prepare(app, decide)
    engine = app.kernel.database.sync_engine
    with ThreadPoolExecutor(1) as other, engine.connect() as deciding:
        with deciding.begin():
            decide(app, deciding)
            naming = other.submit(app.sync.set_holidays, "team", [HOLIDAY])
            assert not naming.done()
        naming.result(timeout=60)
    queued = await days_queued(app, clock)
    assert HOLIDAY not in queued
    assert len(queued) == 13


async def test_while_the_naming_goes_on_the_rule_is_looked_at_once_a_minute_and_not_all_the_time(
    app: Postdate, clock: ManualClock
) -> None:
    with app.kernel.database.sync_engine.begin() as naming:
        app.sync.set_holidays("team", [HOLIDAY], connection=naming)
        rule = daily(app, holidays="team")
        clock.advance(MINUTE)
        report = await Expander(app.kernel).run_once(clock.now())
        assert (report.looked, report.failed) == (1, {})
        seen = app.sync.get_rule(rule)
        assert (seen.look_at, seen.reroll_from) == (clock.now() + MINUTE, clock.now())
    assert HOLIDAY not in await days_queued(app, clock)
    settled = app.sync.get_rule(rule)
    assert settled.reroll_from is None
    assert settled.look_at > clock.now() + MINUTE


def test_a_calendar_that_several_name_at_once_has_the_days_of_one_of_them(app: Postdate) -> None:
    wanted = [[HOLIDAY, "2026-03-11"], [HOLIDAY, "2026-03-12"]]

    def name(days: list[str]) -> Callable[[int, Meeting], object]:
        def contend(_round: int, meeting: Meeting) -> object:
            meeting.start()
            return app.sync.set_holidays("team", days)

        return contend

    for results in race(
        str(app.kernel.database.sync_engine.url.render_as_string(hide_password=False)), 10, *map(name, wanted)
    ):
        assert [list(each) for each in results] == wanted
    assert list(app.sync.holidays("team")) in wanted
