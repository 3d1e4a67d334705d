"""Is a type's hook told of every outcome, in the transaction that settles it?

The example: credits are taken when a paid post is scheduled, and given back when it fails for good.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from postdate import Action, Context, NotSent, Postdate, Reason, Rejected, Skipped, Status
from tests.stories.conftest import NOON
from tests.stories.test_leases import die_after_claiming

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from postdate.clock import ManualClock


class Shop:
    """A host with a table of credits."""

    def __init__(self, app: Postdate) -> None:
        self.app = app
        self.told: list[list[tuple[str, str | None]]] = []
        self.answer: object = None
        self.broken_for: str | None = None
        with app.kernel.database.sync_engine.begin() as connection:
            connection.execute(text("create table refunds (thing text not null)"))
        app.action("publish_post", auto_attempts=1, concurrency=100, settled=self.refund)(self.publish)

    async def publish(self, ctx: Context, payload: dict[str, Any]) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def refund(self, connection: Connection, actions: Sequence[Action]) -> None:
        self.told.append([(str(action.status), action.reason) for action in actions])
        owed = [
            action for action in actions if action.status is Status.FAILED and action.reason is not Reason.UNCONFIRMED
        ]
        for action in owed:
            connection.execute(text("insert into refunds values (:thing)"), {"thing": action.thing_id})
            if action.thing_id == self.broken_for:
                raise LookupError("no such customer")

    def refunds(self) -> list[str]:
        with self.app.kernel.database.sync_engine.begin() as connection:
            return list(connection.execute(text("select thing from refunds order by thing")).scalars())

    async def schedule(self, thing: str = "t", **options: Any) -> Action:
        return await self.app.schedule("publish_post", {"thing_id": thing}, at=NOON, **options)


@pytest.fixture
def shop(app: Postdate) -> Shop:
    return Shop(app)


@pytest.mark.parametrize(
    ("answer", "told", "refunded"),
    [
        ("p-1", ("published", None), []),
        (Rejected("no"), ("failed", "rejected"), ["t"]),
        (NotSent("no"), ("failed", "exhausted"), ["t"]),
        (RuntimeError("?"), ("failed", "unconfirmed"), []),
        (Skipped("gone"), ("cancelled", "skipped"), []),
    ],
)
async def test_the_hook_is_told_how_a_run_ended(
    shop: Shop, answer: object, told: tuple[str, str | None], refunded: list[str]
) -> None:
    shop.answer = answer
    await shop.schedule()
    await shop.app.tick()
    assert shop.told == [[told]]
    assert shop.refunds() == refunded


async def test_the_hook_is_told_of_a_crashed_worker_and_of_the_verdict(shop: Shop, clock: ManualClock) -> None:
    action = await shop.schedule()
    await die_after_claiming(shop.app, "publish_post")
    clock.advance(timedelta(minutes=1))
    await shop.app.tick()
    await shop.app.dismiss(action.id)
    assert shop.told == [[("failed", "unconfirmed")], [("failed", "dismissed")]]
    assert shop.refunds() == ["t"]


async def test_the_hook_is_told_of_what_never_ran(shop: Shop, clock: ManualClock) -> None:
    await shop.schedule("expired", expires_at=NOON + timedelta(seconds=1))
    cancelled = await shop.schedule("cancelled")
    moved = await shop.schedule("moved")
    await shop.app.cancel(cancelled.id)
    await shop.app.cancel(cancelled.id)
    await shop.app.reschedule(moved.id, at=NOON + timedelta(days=1))
    clock.advance(timedelta(minutes=1))
    await shop.app.tick()
    assert shop.told == [[("cancelled", "user")], [("cancelled", "rescheduled")], [("failed", "expired")]]


async def test_a_confirmation_tells_of_the_siblings_it_cancels_too(shop: Shop) -> None:
    shop.answer = RuntimeError("?")
    doubtful = await shop.schedule()
    await shop.app.tick()
    await shop.app.confirm(doubtful.id)
    assert shop.told[-1] == [("published", None)]


async def test_a_hook_that_fails_for_one_is_undone_for_it_alone(shop: Shop) -> None:
    shop.answer = Rejected("no")
    shop.broken_for = "b"
    actions = [await shop.schedule(thing) for thing in "abc"]
    await shop.app.tick()
    assert shop.refunds() == ["a", "c"]
    assert [(await shop.app.get(action.id)).status for action in actions] == [Status.FAILED] * 3
    (event,) = [event for event in await shop.app.history(actions[1].id) if event.cause == "hook_failed"]
    assert "no such customer" in str(event.detail["error"])


async def test_the_hooks_work_goes_with_the_callers_transaction(shop: Shop) -> None:
    shop.answer = RuntimeError("?")
    action = await shop.schedule()
    await shop.app.tick()
    with shop.app.kernel.database.sync_engine.connect() as connection:
        shop.app.sync.dismiss(action.id, connection=connection)
        connection.rollback()
    assert shop.refunds() == []
    assert (await shop.app.get(action.id)).reason is Reason.UNCONFIRMED


def _commits(connection: Connection) -> None:
    connection.commit()


def _rolls_back(connection: Connection) -> None:
    connection.rollback()


def _closes(connection: Connection) -> None:
    connection.close()


def _misspells(connection: Connection) -> None:
    connection.execute(text("insert into no_such_table values (1)"))


def _catches_what_postgresql_does_not_forgive(connection: Connection) -> None:
    with suppress(DBAPIError):
        _misspells(connection)


def _is_too_slow(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        raise TimeoutError
    connection.execute(text("set local statement_timeout = 1"))
    connection.execute(text("select pg_sleep(60)"))


@pytest.mark.parametrize(
    "hook",
    [_commits, _rolls_back, _closes, _misspells, _catches_what_postgresql_does_not_forgive, _is_too_slow],
)
async def test_no_hook_keeps_outcomes_from_being_written(app: Postdate, hook: Callable[[Connection], None]) -> None:
    """Neither that of its own action nor any other's: what it did is undone, and the history says that it failed."""

    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    app.action("hooked", settled=lambda connection, actions: hook(connection))(act)
    app.action("plain")(act)
    hooked, plain = await app.schedule("hooked", {}, at=NOON), await app.schedule("plain", {}, at=NOON)
    await asyncio.wait_for(app.tick(), 20)
    assert (await app.get(hooked.id)).status is Status.PUBLISHED
    assert (await app.get(plain.id)).status is Status.PUBLISHED
    forgiven = hook is _catches_what_postgresql_does_not_forgive and app.kernel.database.is_sqlite
    assert ("hook_failed" in [event.cause for event in await app.history(hooked.id)]) is not forgiven


async def test_a_hook_may_call_verbs_that_call_hooks(app: Postdate) -> None:
    told: list[str] = []

    def cancel_the_next(connection: Connection, actions: Sequence[Action]) -> None:
        for action in actions:
            told.append(str(action.payload["n"]))
            if action.payload["next"]:
                app.sync.cancel(str(action.payload["next"]), connection=connection)

    @app.action("act", settled=cancel_the_next)
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    last = await app.schedule("act", {"n": 0, "next": None}, at=NOON + timedelta(days=1))
    first = await app.schedule("act", {"n": 1, "next": str(last.id)}, at=NOON)
    await asyncio.wait_for(app.tick(), 20)
    assert told == ["1", "0"]
    assert (await app.get(first.id)).status is Status.PUBLISHED
    assert (await app.get(last.id)).status is Status.CANCELLED


async def test_a_hook_can_schedule_what_follows(app: Postdate, clock: ManualClock) -> None:
    """In the transaction that settles: a mail about a failure exists if and only if the failure does."""

    def write_to_the_customer(connection: Connection, actions: Sequence[Action]) -> None:
        for action in actions:
            app.sync.schedule("mail", {"thing_id": action.thing_id}, at=NOON, connection=connection)

    app.action("mail")(lambda ctx, payload: f"mail-{payload['thing_id']}")

    @app.action("publish_post", settled=write_to_the_customer)
    async def publish_post(ctx: Context, payload: dict[str, Any]) -> None:
        raise Rejected("no")

    await app.schedule("publish_post", {"thing_id": "t"}, at=NOON)
    await app.tick()
    await app.tick()
    (mail,) = await app.list(action_type="mail")
    assert (mail.status, mail.provider_id) == (Status.PUBLISHED, "mail-t")
