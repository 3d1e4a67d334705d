"""Does an engine send over kept connections, and does it leave any behind?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate import ActionType, Context, Postdate, Settings, Status, builtin_action_types
from postdate.clock import host_time
from postdate.testing.smtp_server import Ending, ScriptedSmtp
from tests.surfaces.providers.contexts import context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2


@pytest.fixture
async def app(sqlite_url: str, scripted: ScriptedSmtp) -> AsyncIterator[Postdate]:
    settings = Settings(
        database_url=sqlite_url,
        smtp_url=f"smtp://127.0.0.1:{scripted.port}",  # type: ignore[arg-type]
        smtp_from="Shop <hello@shop.test>",
    )
    made = Postdate(settings=settings)
    made.include(*(each for each in builtin_action_types(settings) if each.name == "send_email"))
    yield made
    await made.close()


async def schedule(app: Postdate, count: int) -> None:
    due = host_time() - timedelta(minutes=1)
    payload = {"to": "ana@shop.test", "subject": "Hello", "text": "Hi"}
    for _ in range(count):
        await app.schedule("send_email", payload, at=due)


async def test_a_tick_uses_connections_again_and_says_goodbye_to_all_of_them(
    app: Postdate, scripted: ScriptedSmtp
) -> None:
    await schedule(app, 50)
    await app.tick()
    assert len(scripted.letters) == 50
    assert len({letter.message()["Message-ID"] for letter in scripted.letters}) == 50
    assert scripted.connections < 50
    assert scripted.seen.count("QUIT") == scripted.connections
    assert [action.status for action in await app.list()] == [Status.PUBLISHED] * 50


async def test_emails_and_reminders_go_over_the_same_connections(
    http: httpx2.AsyncClient, scripted: ScriptedSmtp
) -> None:
    settings = Settings(smtp_url=f"smtp://127.0.0.1:{scripted.port}", smtp_from="hello@shop.test")  # type: ignore[arg-type]
    types = {each.name: each for each in builtin_action_types(settings)}
    email, reminder = types["send_email"], types["reminder"]
    await email.handler(context(http), email.load({"to": "ana@shop.test", "subject": "Hello", "text": "Hi"}))
    await reminder.handler(context(http), reminder.load({"via": "email", "to": "ben@shop.test", "text": "Call Ana"}))
    assert len(scripted.letters) == 2
    assert scripted.connections == 1
    for each in (email, reminder):
        assert each.close is not None
        await each.close()
    assert scripted.seen.count("QUIT") == 1


async def test_what_a_person_reads_of_a_failed_email_names_each_recipient_and_reply(
    app: Postdate, scripted: ScriptedSmtp
) -> None:
    scripted.script = {"ana@shop.test": "550 unknown", "ben@shop.test": "551 moved"}
    payload = {"to": ["ana@shop.test", "ben@shop.test"], "subject": "Hello", "text": "Hi"}
    action = await app.schedule("send_email", payload, at=host_time() - timedelta(minutes=1))
    await app.tick()
    found = await app.get(action.id)
    assert (found.status, found.reason) == (Status.FAILED, "rejected")
    assert found.last_error == "ana@shop.test was refused: 550 unknown; ben@shop.test was refused: 551 moved"


async def test_a_doubtful_email_is_not_sent_again(app: Postdate, scripted: ScriptedSmtp) -> None:
    scripted.script = {"message": [Ending.CUT, "250 OK"]}
    await schedule(app, 1)
    await app.tick()
    (action,) = await app.list()
    assert (action.status, action.reason) == (Status.FAILED, "unconfirmed")
    assert scripted.seen.count("message") == 1


async def test_what_is_kept_is_let_go_of_even_when_the_engine_fails(sqlite_url: str) -> None:
    closed: list[str] = []

    def unready() -> None:
        raise RuntimeError("not today")

    async def close() -> None:
        closed.append("closed")

    async def handler(ctx: Context, payload: dict[str, object]) -> None: ...

    app = Postdate(sqlite_url)
    app.include(ActionType(name="act", handler=handler, close=close, configured=unready))
    with pytest.raises(RuntimeError, match="not today"):
        await app.tick()
    await app.close()
    assert closed == ["closed"]
