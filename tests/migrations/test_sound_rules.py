"""What becomes of rows of rules that nobody could read, which other programs have written?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from postdate import Postdate, Status
from postdate.clock import ManualClock
from postdate.domain.rule import RuleStatus
from postdate.engine.expand import Expander
from postdate.store.database import Database
from postdate.store.migrate import upgrade
from postdate.store.schema import SYSTEM_PROFILE
from tests.migrations.test_upgrades import upgrade_to

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON = datetime(2027, 3, 14, 12, tzinfo=UTC)
BEFORE = "0006"
LAST = datetime.max.replace(tzinfo=UTC)


def table(url: str, name: str = "recurring_schedules") -> str:
    return name if url.startswith("sqlite") else f"postdate.{name}"


def instant(url: str, at: datetime) -> Any:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) if url.startswith("sqlite") else at


def row(url: str, **said: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": str(uuid4()),
        "user_id": str(SYSTEM_PROFILE),
        "action_type": "post",
        "payload_template": "{}",
        "kind": "cron",
        "rrule": "0 9 * * *",
        "starts_at": instant(url, NOON),
        "tz": "UTC",
        "gap": "forward",
        "fold": "first",
        "misfire": "once",
        "grace_seconds": 3600,
        "overlap": "allow",
        "last_materialized_at": instant(url, NOON),
        "look_at": instant(url, NOON),
        "created_at": instant(url, NOON),
    }
    return {**plain, **said}


def written(url: str, values: dict[str, Any]) -> UUID:
    database = Database(url)
    casts = {"id": "uuid", "user_id": "uuid", "rule_id": "uuid"} | dict.fromkeys(
        ("payload_template", "overrides", "exdates", "rdates"), "jsonb"
    )
    named = [
        f"cast(:{name} as {casts[name]})" if name in casts and not url.startswith("sqlite") else f":{name}"
        for name in values
    ]
    into = table(url, "rule_occurrences" if "rule_id" in values else "recurring_schedules")
    try:
        with database.sync_engine.begin() as connection:
            connection.execute(text(f"insert into {into} ({', '.join(values)}) values ({', '.join(named)})"), values)
    finally:
        database.close_sync()
    return UUID(values.get("id") or values["rule_id"])


@pytest.fixture
def app(database_url: str) -> Iterator[Postdate]:
    app = Postdate(database_url, clock=ManualClock(NOON))
    app.action("post")(lambda ctx, payload: None)
    yield app
    app.kernel.database.close_sync()


NO_LIST = ["null", "{}", '"2027-03-15"', "1"]
NO_OBJECT = ["null", "[]", '"text"', "1"]


def test_json_of_another_shape_is_refused(app: Postdate, database_url: str) -> None:
    """Its name says which."""
    shapes = {"exdates": NO_LIST, "rdates": NO_LIST, "overrides": NO_OBJECT, "payload_template": NO_OBJECT}
    for name, values in shapes.items():
        for value in values:
            shape = "array" if name.endswith("dates") else "object"
            with pytest.raises(IntegrityError, match=f"recurring_schedules_{name.removesuffix('_template')}_{shape}"):
                written(database_url, row(database_url, **{name: value}))
    assert app.sync.list_rules() == []


@pytest.mark.parametrize(
    "name", ["starts_at", "ends_at", "last_materialized_at", "look_at", "reroll_from", "created_at"]
)
def test_instants_that_no_calendar_has_are_refused(app: Postdate, database_url: str, name: str) -> None:
    for value in (
        (253402300800000000, -62135596800000001) if database_url.startswith("sqlite") else ("infinity", "-infinity")
    ):
        with pytest.raises(IntegrityError, match=f"recurring_schedules_{name}_range"):
            written(database_url, row(database_url, **{name: value}))


async def test_a_rule_that_cannot_be_read_is_told_and_shown_and_ended_and_stops_no_other(
    app: Postdate, database_url: str
) -> None:
    """What no check can see: the elements of a list, and of the overrides those that are due."""
    broken = {
        "exdates": {"kind": "rrule", "rrule": "FREQ=DAILY", "starts_wall": "2027-03-14T09:00", "exdates": "[null, 5]"},
        "rrule": {"rrule": "whenever"},
        "zone": {"tz": "Mars/Olympus"},
        "overrides": {"overrides": json.dumps({"2027-03-15T09:00:00Z": 5})},
    }
    ids = {name: written(database_url, row(database_url, **said)) for name, said in broken.items()}
    sound = written(database_url, row(database_url))
    report = await Expander(app.kernel).run_once(NOON)
    assert set(report.failed) == set(ids.values())
    assert {each.origin_id for each in await app.list(status=Status.QUEUED)} == {str(sound)}
    rules = {rule.id: rule for rule in await app.list_rules()}
    assert rules.keys() == {sound, *ids.values()}
    for rule_id, error in report.failed.items():
        assert rules[rule_id].last_error == error
        assert rules[rule_id].look_at == NOON + timedelta(hours=1)
        assert (await app.get_rule(rule_id)).status is RuleStatus.ACTIVE
        await app.pause_rule(rule_id)
        assert (await app.end_rule(rule_id)).status is RuleStatus.ENDED
    await app.close()


async def test_an_upgrade_mends_what_was_written_and_pauses_what_may_have_been_kept_from_firing(
    empty_database_url: str,
) -> None:
    url = empty_database_url
    sqlite = url.startswith("sqlite")
    upgrade_to(url, BEFORE)
    never, ever = (-(2**62), 2**62) if sqlite else ("-infinity", "infinity")
    nothing = written(url, row(url, exdates="null", rdates="null", overrides="null"))
    no_list = written(url, row(url, exdates='"2027-03-15"'))
    no_payload = written(url, row(url, payload_template="[]", status="ended"))
    far = written(url, row(url, starts_at=never, ends_at=ever))
    sound = written(url, row(url, exdates="[]", overrides='{"2027-03-15T09:00:00Z": {"text": "x"}}'))
    line = {"state": "withdrawn", "changed_at": instant(url, NOON)}
    written(url, {"rule_id": str(sound), "nominal_at": ever, **line})
    written(url, {"rule_id": str(sound), "nominal_at": instant(url, NOON), **line, "changed_at": ever})
    upgrade(url)
    upgrade(url)
    app = Postdate(url, clock=ManualClock(NOON))
    app.action("post")(lambda ctx, payload: None)
    rules = {rule.id: rule for rule in await app.list_rules()}
    assert [rules[each].status for each in (nothing, no_list, no_payload, far, sound)] == [
        "active",
        "paused",
        "ended",
        "active",
        "active",
    ]
    assert [(each.exdates, each.rdates, each.overrides) for each in (rules[nothing], rules[no_list])] == [
        ((), (), {})
    ] * 2
    assert 'exdates "2027-03-15"' in str(rules[no_list].last_error)
    assert rules[no_payload].payload_template == {}
    assert (rules[far].starts_at.year, rules[far].ends_at) == (1, LAST)
    assert rules[sound].overrides == {"2027-03-15T09:00:00Z": {"text": "x"}}
    assert (rules[sound].last_error, rules[sound].version) == (None, 1)
    report = await Expander(app.kernel).run_once(NOON)
    assert (report.looked, report.failed) == (3, {})
    await app.resume_rule(no_list)
    assert len(await app.list(status=Status.QUEUED, limit=1000)) == 4 * 14
    await app.close()
