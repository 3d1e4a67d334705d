"""When is a connection to the mail server used again, and what if it is gone?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.outcome import NotSent, Unconfirmed
from postdate.providers.mail import SendEmail
from postdate.providers.mailbox import Mailbox
from postdate.providers.smtp import Smtp
from postdate.providers.smtp_connections import Connections
from postdate.providers.smtp_url import SmtpServer
from postdate.testing.smtp_server import Ending, ScriptedSmtp
from tests.surfaces.providers.contexts import context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import httpx2

FIRST = ["EHLO", "MAIL", "RCPT", "DATA", "message"]
AGAIN = ["RSET", "MAIL", "RCPT", "DATA", "message"]


def mail(name: str = "ana") -> SendEmail:
    return SendEmail(to=[f"{name}@shop.test"], subject="Hello", text=f"Hi {name}")


class Sender:
    """Sends to the scripted server."""

    def __init__(self, http: httpx2.AsyncClient, port: int, **options: Any) -> None:
        self._http = http
        server = SmtpServer.parse(f"smtp://127.0.0.1:{port}")
        self.smtp = Smtp(server=server, sender=Mailbox.parse("hello@shop.test"), connections=Connections(**options))

    async def send(self, name: str = "ana") -> None:
        await self.smtp.send(context(self._http), mail(name))


@pytest.fixture
async def sender(http: httpx2.AsyncClient, scripted: ScriptedSmtp) -> AsyncIterator[Sender]:
    made = Sender(http, scripted.port)
    yield made
    await made.smtp.close()


async def test_the_next_message_goes_over_the_same_connection_after_a_reset(
    scripted: ScriptedSmtp, sender: Sender
) -> None:
    await sender.send("ana")
    await sender.send("ben")
    assert scripted.seen == [*FIRST, *AGAIN]
    assert scripted.connections == 1
    assert [letter.recipients for letter in scripted.letters] == [("ana@shop.test",), ("ben@shop.test",)]


async def test_a_refused_message_leaves_nothing_of_its_envelope_to_the_next(
    scripted: ScriptedSmtp, sender: Sender
) -> None:
    scripted.script = {"DATA": ["451 later", "354 go on"]}
    with pytest.raises(NotSent):
        await sender.send("ana")
    await sender.send("ben")
    assert scripted.connections == 1
    assert [letter.recipients for letter in scripted.letters] == [("ben@shop.test",)]


@pytest.mark.parametrize(
    ("step", "replies"),
    [
        ("RSET", [Ending.CUT]),
        ("RSET", ["421 too long"]),
        ("RSET", ["500 what"]),
        ("RSET", ["nonsense"]),
        ("MAIL", ["250 OK", Ending.CUT, "250 OK"]),
        ("MAIL", ["250 OK", "421 enough", "250 OK"]),
        ("RCPT", ["250 OK", Ending.CUT, "250 OK"]),
        ("RCPT", ["250 OK", "421 enough", "250 OK"]),
        ("RCPT", ["250 OK", "nonsense", "250 OK"]),
    ],
)
async def test_a_kept_connection_that_fails_before_data_is_replaced_by_a_fresh_one(
    scripted: ScriptedSmtp, sender: Sender, step: str, replies: Sequence[str]
) -> None:
    scripted.script = {step: replies}
    await sender.send("ana")
    await sender.send("ben")
    assert scripted.connections == 2
    assert [letter.recipients for letter in scripted.letters] == [("ana@shop.test",), ("ben@shop.test",)]


async def test_a_silent_kept_connection_is_replaced_by_a_fresh_one(
    scripted: ScriptedSmtp, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postdate.providers.smtp.RESET_SECONDS", 0.1)
    scripted.script = {"RSET": Ending.SILENCE}
    await sender.send("ana")
    await sender.send("ben")
    assert (scripted.connections, len(scripted.letters)) == (2, 2)


async def test_after_a_restart_of_the_server_each_kept_connection_costs_one_new_one_and_no_message(
    scripted: ScriptedSmtp, sender: Sender
) -> None:
    await asyncio.gather(*(sender.send() for _ in range(3)))
    await scripted.hang_up()
    await asyncio.gather(*(sender.send() for _ in range(3)))
    assert (scripted.connections, len(scripted.letters)) == (6, 6)


async def test_a_fresh_connection_is_not_replaced_when_it_fails_as_well(scripted: ScriptedSmtp, sender: Sender) -> None:
    await sender.send()
    scripted.script = {"RSET": Ending.CUT, "MAIL": Ending.CUT}
    with pytest.raises(NotSent, match="before the message"):
        await sender.send()
    assert scripted.connections == 2


@pytest.mark.parametrize("step", ["DATA", "message"])
@pytest.mark.parametrize("ending", [Ending.CUT, Ending.HALF])
async def test_nothing_is_done_twice_on_a_kept_connection_once_data_was_begun(
    scripted: ScriptedSmtp, sender: Sender, step: str, ending: Ending
) -> None:
    await sender.send("ana")
    scripted.script = {step: ending}
    with pytest.raises(Unconfirmed):
        await sender.send("ben")
    assert scripted.connections == 1
    scripted.script = {}
    await sender.send("cleo")
    assert scripted.connections == 2, "and the connection is not used again"
    assert [letter.recipients for letter in scripted.letters] == [("ana@shop.test",), ("cleo@shop.test",)]


@pytest.mark.parametrize("step", ["DATA", "message"])
async def test_a_server_that_goes_down_while_it_refuses_is_left(
    scripted: ScriptedSmtp, sender: Sender, step: str
) -> None:
    scripted.script = {step: "421 going down"}
    with pytest.raises(NotSent, match="421 going down"):
        await sender.send()
    scripted.script = {}
    await sender.send()
    assert scripted.connections == 2


async def test_a_connection_takes_only_so_many_messages(http: httpx2.AsyncClient, scripted: ScriptedSmtp) -> None:
    sender = Sender(http, scripted.port, messages_each=2)
    for _ in range(5):
        await sender.send()
    await sender.smtp.close()
    assert scripted.connections == 3
    assert scripted.seen.count("QUIT") == 3


async def test_a_connection_that_nobody_needs_is_closed_with_a_goodbye(
    http: httpx2.AsyncClient, scripted: ScriptedSmtp
) -> None:
    sender = Sender(http, scripted.port, idle_seconds=0.01)
    await sender.send()
    await asyncio.wait_for(scripted.left.wait(), 5)
    assert scripted.seen == [*FIRST, "QUIT"]
    await sender.send()
    await sender.smtp.close()
    assert scripted.connections == 2


async def test_messages_at_the_same_time_go_over_connections_of_their_own(
    http: httpx2.AsyncClient, scripted: ScriptedSmtp
) -> None:
    sender = Sender(http, scripted.port, at_most=4)
    names = [f"reader-{number}" for number in range(20)]
    for wave in (names[:10], names[10:]):
        await asyncio.gather(*(sender.send(name) for name in wave))
    await sender.smtp.close()
    assert scripted.connections == 10 + 6, "four were kept for the second wave"
    assert scripted.seen.count("QUIT") == 16, "and all were left in the end"
    arrived = {letter.recipients[0]: letter.message().get_content().strip() for letter in scripted.letters}
    assert arrived == {f"{name}@shop.test": f"Hi {name}" for name in names}


async def test_a_run_that_is_cut_off_takes_its_kept_connection_with_it(scripted: ScriptedSmtp, sender: Sender) -> None:
    await sender.send()
    scripted.script = {"RCPT": Ending.SILENCE}
    run = asyncio.create_task(sender.send())
    await scripted.silent.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await asyncio.wait_for(scripted.left.wait(), 5)
    scripted.script = {}
    await sender.send()
    assert scripted.connections == 2


async def test_each_event_loop_keeps_its_own_connections(scripted: ScriptedSmtp, sender: Sender) -> None:
    async def elsewhere() -> None:
        await sender.send("ben")
        await sender.smtp.close()

    await sender.send("ana")
    await asyncio.to_thread(asyncio.run, elsewhere())
    await sender.send("cleo")
    assert scripted.connections == 2
    assert scripted.seen.count("QUIT") == 1


async def test_what_is_closed_may_be_used_again(scripted: ScriptedSmtp, sender: Sender) -> None:
    await sender.send()
    await sender.smtp.close()
    await sender.smtp.close()
    assert scripted.seen == [*FIRST, "QUIT"]
    await sender.send()
    assert scripted.connections == 2
