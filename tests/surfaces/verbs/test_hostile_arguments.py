"""Does every verb answer arguments that make no sense with an error of ours, naming what is wrong with which?"""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from itertools import count, repeat
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from sqlalchemy import text

from postdate import (
    Action,
    Invalid,
    Misconfigured,
    NewAction,
    NotFound,
    OwnerNotFound,
    Postdate,
    PostdateError,
    RecurringRule,
    SyncVerbs,
)
from postdate.clock import ManualClock
from postdate.store.schema import SYSTEM_PROFILE, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection


SOON = datetime(2099, 3, 14, 9, tzinfo=UTC)


class Odd:
    """An object that says nothing of itself, and not even that well."""

    def __repr__(self) -> str:
        raise RuntimeError("not even this")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: dict[str, Any] = {
    "nothing": None,
    "true": True,
    "a number": 7,
    "less than nothing": -1,
    "a huge number": 10**40,
    "a huge debt": -(10**40),
    "a fraction": 1.5,
    "no number": float("nan"),
    "infinity": float("inf"),
    "a decimal": Decimal("NaN"),
    "no text": "",
    "text": "nonsense",
    "a number as text": "5",
    "huge text": "x" * 1_000_000,
    "a control character": "a\x1fb",
    "nul": "\x00",
    "a lone surrogate": "\ud800",
    "bytes": b"bytes",
    "a naive datetime": datetime(2099, 1, 1),  # noqa: DTZ001 - that is what is wrong with it
    "a datetime of no zone that is": datetime(2099, 1, 1, tzinfo=tzinfo()),  # type: ignore[abstract] # that is what is wrong with it
    "the first instant": datetime.min.replace(tzinfo=UTC),
    "the last instant": datetime.max.replace(tzinfo=UTC),
    "a huge fraction": 1e300,
    "a day": date(2099, 1, 1),
    "a span": timedelta(hours=1),
    "the longest span": timedelta.max,
    "the longest way back": timedelta.min,
    "an id": SYSTEM_PROFILE,
    "a list": ["a"],
    "a list of anything": [Odd(), None],
    "a list of long text": ["9" * 1_000_000],
    "a deep list": nested(100_000),
    "an object": {"a": 1},
    "an object of anything": {"a": Odd(), 1: {2}},
    "a deep object": {"a": nested(100_000)},
    "a set": {1},
    "a function": len,
    "a class": Postdate,
    "a class of lists": list,
    "an error": ValueError("x"),
    "something odd": Odd(),
}

MAX_TOLD = 1_000
"""How many characters an error has at most, whatever it is about."""

RIGHT: dict[str, Any] = {
    "action_type": "note",
    "payload": {"text": "Hi"},
    "at": SOON,
    "actions": [NewAction(action_type="note", payload={}, at=SOON)],
    "url": "https://hooks.example/",
    "workspace": UUID(int=7),
    "hours": "22:00-07:00",
    "occurrence": SOON,
    "to": SOON + timedelta(hours=1),
    "calendar": "holidays",
    "days": ["2099-12-25"],
}
"""What is given for the other arguments where a verb cannot do without; `action` and `rule` are made anew."""

ENDLESS: dict[str, Any] = {"dates without end": repeat("2099-01-01"), "nothing without end": repeat(None)}
"""Only what has a bound may be given these."""

FORMS: dict[str, Any] = {"rrule": "FREQ=WEEKLY", "cron": "0 9 * * 6", "every": timedelta(weeks=1)}
"""The three forms of a recurrence: what is said of its instants is read differently in each."""

OF_INSTANTS = ("start", "tz", "gap", "fold", "ends_at", "exdates", "rdates")

VERBS = {name: verb for name, verb in vars(SyncVerbs).items() if not name.startswith("_")}


def parameters(verb: Any) -> dict[str, inspect.Parameter]:
    _, *taken = inspect.signature(verb).parameters.values()  # the kernel's place is the app's
    return {each.name: each for each in taken}


RULE_VERBS = {name for name, verb in VERBS.items() if {"rule", "rrule", "calendar"} & {*parameters(verb)}} | {
    "list_rules"
}
RULE_CASES = [
    pytest.param(verb, form, id=f"{verb}-{form}" if form else verb)
    for verb in sorted(RULE_VERBS)
    for form in (None, *(FORMS if "rrule" in parameters(VERBS[verb]) else ()))
    if form or verb != "create_rule"  # which cannot do without one
]


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Postdate]:
    opened = Postdate(sqlite_url, clock=ManualClock(SOON - timedelta(days=1)))
    opened.action("note")(lambda ctx, payload: None)
    with opened.kernel.database.sync_engine.begin() as connection:
        connection.execute(text("insert into workspaces (id) values (:id)"), {"id": str(RIGHT["workspace"])})
    yield opened
    opened.kernel.database.close_sync()


def given(app: Postdate, verb: str, argument: str, value: object) -> dict[str, Any]:
    """Return arguments that are right but for one."""
    right = {name: queued(app).id if name == "action" else RIGHT[name] for name in needed(verb) if name != argument}
    if argument == "tz" and "hours" in right:
        return right | {argument: value}
    if "hours" in parameters(VERBS[verb]):
        right["tz"] = "Europe/Lisbon"
    if argument in {"tz", "gap", "fold"}:
        right["at"] = "2099-03-14T09:00"
        right.setdefault("tz", "Europe/Lisbon")
    if argument == "note" and "force" in parameters(VERBS[verb]):
        right["force"] = True
    return right | {argument: value}


def needed(verb: str) -> list[str]:
    return [each.name for each in parameters(VERBS[verb]).values() if each.default is inspect.Parameter.empty]


def queued(app: Postdate) -> Action:
    return app.sync.schedule("note", {}, at=SOON)


def raw_errors(call: Callable[[Any], object]) -> list[str]:
    """Call it with each hostile value, and return what it raised that is not ours."""
    raw = []
    for kind, value in HOSTILE.items():
        try:
            call(value)
        except PostdateError as error:
            raw += [f"{kind}: told at length"] if len(str(error)) > MAX_TOLD else []
        except Exception as error:  # noqa: BLE001 - that is what there must be none of
            raw.append(f"{kind}: {type(error).__name__}")
    return raw


@pytest.mark.parametrize("verb", sorted({*VERBS} - RULE_VERBS))
def test_a_verb_takes_an_argument_or_says_what_is_wrong_with_it(app: Postdate, verb: str) -> None:
    assert {*needed(verb)} <= {*RIGHT, "action"}, "say in RIGHT what is right for the others"
    for argument in parameters(VERBS[verb]):
        raw = raw_errors(lambda value: getattr(app.sync, verb)(**given(app, verb, argument, value)))  # noqa: B023
        assert not raw, argument
    assert queued(app).status == "queued", "the app works on"


@pytest.mark.parametrize(("verb", "form"), RULE_CASES)
def test_a_verb_of_rules_takes_an_argument_or_names_it_and_leaves_no_trace(
    app: Postdate, verb: str, form: str | None
) -> None:
    """In the caller's transaction, which goes on: an error there would leave behind what was written before it."""
    wrong: list[str] = []
    with app.kernel.database.sync_engine.begin() as connection:
        right = right_of_rules(app, verb, form, connection)
        before = everything(app, connection)
        for argument in parameters(VERBS[verb]) if form in {None, "rrule"} else OF_INSTANTS:
            asked = {name: said for name, said in right.items() if argument not in FORMS or name not in FORMS}
            for kind, value in (HOSTILE | ENDLESS).items():
                if argument == "connection" and value is None:  # would wait for the one that is open here
                    continue
                undone = connection.begin_nested()
                try:
                    result = getattr(app.sync, verb)(**asked | {argument: value})
                    if isinstance(result, RecurringRule):
                        require_sound(app, result, connection)
                    undone.rollback()
                except PostdateError as error:
                    undone.commit()
                    if not (argument in str(error) or isinstance(error, NotFound)) or len(str(error)) > MAX_TOLD:
                        wrong.append(f"{argument}, {kind}: told as {str(error)[:MAX_TOLD]}")
                except Exception as error:  # noqa: BLE001 - that is what there must be none of
                    undone.rollback()
                    wrong.append(f"{argument}, {kind}: {type(error).__name__}: {str(error)[:80]}")
            if everything(app, connection) != before:
                wrong.append(f"{argument}: left a trace")
    assert not wrong, "\n".join(wrong)
    assert queued(app).status == "queued", "the app works on"


def right_of_rules(app: Postdate, verb: str, form: str | None, connection: Connection) -> dict[str, Any]:
    """Return arguments that are right, in the form asked for, about a rule that has something in the queue."""
    rule = app.sync.create_rule(
        "note", {}, rrule="FREQ=WEEKLY", start=SOON, tz="Europe/Berlin", holidays="holidays", connection=connection
    )
    right = {name: rule.id if name == "rule" else RIGHT[name] for name in needed(verb)} | {"connection": connection}
    if form is not None:
        right |= {form: FORMS[form], "start": "2099-03-14T09:00", "tz": "Europe/Berlin"}
    elif "rule" in parameters(VERBS[verb]):
        right["rule"] = rule.id
    return right


def require_sound(app: Postdate, rule: RecurringRule, connection: Connection) -> None:
    """What was taken must be a rule that the engine can read, and so can people."""
    assert rule.last_error is None
    assert app.sync.get_rule(rule.id, connection=connection) == rule
    assert rule.describe()
    app.sync.preview_rule(rule.id, connection=connection)


def everything(app: Postdate, connection: Connection) -> dict[str, list[Any]]:
    """Return all rows of all our tables."""
    held = tables(app.kernel.names, connection.dialect.name).metadata.sorted_tables
    return {each.name: sorted(map(repr, connection.execute(each.select()))) for each in held}


def test_of_many_those_that_make_no_sense_drop_out_alone(app: Postdate) -> None:
    right: dict[str, Any] = {"action_type": "note", "payload": {}, "at": "2099-03-14T09:00", "tz": "Europe/Lisbon"}
    odd = [NewAction(**right | {each.name: value}) for each in fields(NewAction) for value in HOSTILE.values()]
    news = [NewAction(**right), *odd, *HOSTILE.values(), NewAction(**right)]
    results = app.sync.schedule_many(news)
    assert isinstance(results[0], Action)
    assert isinstance(results[-1], Action)
    for result in results[-1 - len(HOSTILE) : -1]:
        assert isinstance(result, Invalid)
        assert (result.field, result.rule) == ("actions", "must be NewAction values")


def test_a_workspace_that_does_not_exist_keeps_no_namesake_out(app: Postdate) -> None:
    """A workspace and a profile may have the same id; one that is missing is not the other."""
    news = [NewAction(action_type="note", payload={}, at=SOON, workspace=each) for each in (SYSTEM_PROFILE, None)]
    refused, queued = app.sync.schedule_many(news)
    assert isinstance(refused, OwnerNotFound)
    assert isinstance(queued, Action)


async def test_the_engine_is_told_of_types_by_name(app: Postdate) -> None:
    for value in HOSTILE.values():
        with suppress(PostdateError):
            await app.tick(types=value)
    with pytest.raises(Invalid, match="types: must be a list of names"):
        await app.tick(types="note")
    await app.close()


def test_a_database_url_that_is_none_is_refused_without_being_shown() -> None:
    del (urls := dict(HOSTILE))["nothing"]
    for value in urls.values():
        with pytest.raises(Misconfigured) as refused:
            Postdate(value)
        assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    "limit", ["name", "auto_attempts", "max_attempts", "timeout", "concurrency", "backoff", "lookup"]
)
def test_an_action_type_that_cannot_be_is_refused_when_it_is_registered(app: Postdate, limit: str) -> None:
    names = count()

    def register(value: object) -> None:
        given: dict[str, Any] = {"name": f"type {next(names)}", limit: value}
        app.action(**given)(lambda ctx, payload: None)

    assert not raw_errors(register)
