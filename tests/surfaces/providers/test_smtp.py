"""What reaches a mail server, and what does its answer become?"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.providers.mail import SendEmail
from postdate.providers.mailbox import Mailbox
from postdate.providers.smtp import Smtp
from postdate.providers.smtp_url import Security, SmtpServer
from postdate.testing.smtp_server import Ending, ScriptedSmtp
from tests.surfaces.providers.contexts import ACTION_ID, NOW, context
from tests.surfaces.providers.smtp_receiver import Mailroom, authenticator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2
    import trustme

HELLO = SendEmail(to=["ana@shop.test"], subject="Hello", text="Hi Ana\n")
MESSAGE_ID = f"<{ACTION_ID}@shop.test>"
LONG_URL = "<https://shop.test/unsubscribe/" + "t" * 400 + ">"


MakeSmtp = Callable[..., Smtp]


@pytest.fixture
async def smtp() -> AsyncIterator[MakeSmtp]:
    """Make providers, and close what they keep."""
    made: list[Smtp] = []

    def make(port: int, url: str = "smtp://127.0.0.1:{port}", **options: Any) -> Smtp:
        server = SmtpServer.parse(url.format(port=port))
        made.append(Smtp(server=server, sender=Mailbox.parse("The Shop <hello@shop.test>"), **options))
        return made[-1]

    yield make
    for each in made:
        await each.close()


async def test_an_email_arrives_as_it_was_written(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    mail = SendEmail(
        to=["Ana Pérez <ana@shop.test>", "ben@shop.test"],
        cc=["Cleo, the Boss <cleo@shop.test>"],
        bcc=["dan@shop.test", "ANA <ana@shop.test>"],
        reply_to=["help@shop.test"],
        subject="Um neun: Grüße aus Köln " + "🎉" * 40,
        text=".\nA line that begins with a dot, one that is long " + "x" * 2000 + "\nžluťoučký kůň",
        html="<p>Grüße</p>",
        headers={
            "List-Unsubscribe": LONG_URL,
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "X-Campaign": "Frühling",
        },
    )
    async with Mailroom().open() as mailroom:
        outcome = await smtp(mailroom.port).send(context(http), mail)

    (envelope,) = mailroom.envelopes
    assert envelope.mail_from == "hello@shop.test"
    assert envelope.rcpt_tos == ["ana@shop.test", "ben@shop.test", "cleo@shop.test", "dan@shop.test"]

    message = mailroom.message()
    assert message["From"] == "The Shop <hello@shop.test>"
    assert [(each.display_name, each.addr_spec) for each in message["To"].addresses] == [
        ("Ana Pérez", "ana@shop.test"),
        ("", "ben@shop.test"),
    ]
    assert [(each.display_name, each.addr_spec) for each in message["Cc"].addresses] == [
        ("Cleo, the Boss", "cleo@shop.test")
    ]
    assert message["Bcc"] is None
    assert b"dan@shop.test" not in mailroom.raw()
    assert message["Reply-To"] == "help@shop.test"
    assert message["Subject"] == mail.subject
    assert message["Message-ID"] == MESSAGE_ID
    assert outcome == Published(provider_id=MESSAGE_ID), "P28: the outside system's id is kept"
    assert parsedate_to_datetime(message["Date"]) == NOW.replace(microsecond=0)
    assert message["X-Campaign"] == "Frühling"
    text, html = message.iter_parts()
    assert text.get_content().splitlines() == mail.text.splitlines() if mail.text else False
    assert html.get_content().strip() == "<p>Grüße</p>"

    assert mailroom.raw().isascii()
    lines = mailroom.raw().split(b"\r\n")
    assert not any(b"\n" in line or b"\r" in line for line in lines), "lines end in CRLF and nothing else"
    assert max(map(len, lines)) <= 998
    assert f"List-Unsubscribe: {LONG_URL}".encode() in lines, "a long address is neither folded nor encoded"
    assert b"List-Unsubscribe-Post: List-Unsubscribe=One-Click" in lines


async def test_html_alone_is_sent_as_the_whole_message(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    async with Mailroom().open() as mailroom:
        await smtp(mailroom.port).send(context(http), SendEmail(to=["a@b.test"], subject="", html="<b>x</b>"))
    assert mailroom.message().get_content_type() == "text/html"
    assert mailroom.message().get_content().strip() == "<b>x</b>"


async def test_every_attempt_at_one_action_has_the_same_message_id(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    async with Mailroom().open() as mailroom:
        for attempt in (1, 2):
            await smtp(mailroom.port).send(context(http, attempt=attempt), HELLO)
    assert [f"Message-ID: {MESSAGE_ID}" in str(each.content) for each in mailroom.envelopes] == [True, True]


async def test_an_email_may_name_its_own_sender(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    mail = HELLO.model_copy(update={"sender": "Ben <ben@other.test>"})
    async with Mailroom().open() as mailroom:
        outcome = await smtp(mailroom.port).send(context(http), mail)
    assert mailroom.envelopes[0].mail_from == "ben@other.test"
    assert mailroom.message()["From"].addresses[0].addr_spec == "ben@other.test"
    assert outcome.provider_id == f"<{ACTION_ID}@other.test>"


@pytest.mark.parametrize("step", ["MAIL", "ana@shop.test", "DATA"])
@pytest.mark.parametrize(
    ("reply", "expected"),
    [("421 going down", NotSent), ("450 try later", NotSent), ("550 no", Rejected), ("530 sign in first", NotSent)],
)
async def test_4xx_took_nothing_and_5xx_refused_at_any_step(
    smtp: MakeSmtp, http: httpx2.AsyncClient, step: str, reply: str, expected: type[Exception]
) -> None:
    """P32 and P29: only what was surely not taken is queued again."""
    async with Mailroom(refuse={step: reply}).open() as mailroom:
        with pytest.raises(expected, match=reply):
            await smtp(mailroom.port).send(context(http), HELLO)
    assert mailroom.envelopes == []


TWO = SendEmail(to=["ana@shop.test", "ben@shop.test"], subject="Hello", text="Hi")


async def test_a_recipient_refused_for_good_does_not_keep_the_message_from_the_others(
    smtp: MakeSmtp, http: httpx2.AsyncClient
) -> None:
    async with Mailroom(refuse={"ana@shop.test": "550 unknown"}).open() as mailroom:
        with capture_logs() as logs:
            outcome = await smtp(mailroom.port).send(context(http), TWO)
    assert outcome.provider_id == MESSAGE_ID
    assert [envelope.rcpt_tos for envelope in mailroom.envelopes] == [["ben@shop.test"]]
    assert [(line["log_level"], line["refused"]) for line in logs] == [("warning", {"ana@shop.test": "550 unknown"})]


async def test_while_one_recipient_is_put_off_nobody_gets_the_message(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    async with Mailroom(refuse={"ben@shop.test": "451 greylisted"}).open() as mailroom:
        with pytest.raises(NotSent, match=r"ben@shop\.test was refused: 451 greylisted"):
            await smtp(mailroom.port).send(context(http), TWO)
        assert mailroom.envelopes == []
        mailroom.refuse.clear()
        await smtp(mailroom.port).send(context(http, attempt=2), TWO)
    assert [envelope.rcpt_tos for envelope in mailroom.envelopes] == [["ana@shop.test", "ben@shop.test"]]


async def test_the_message_is_rejected_when_all_its_recipients_are(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    refuse = {"ana@shop.test": "550 unknown", "ben@shop.test": "551 moved"}
    async with Mailroom(refuse=refuse).open() as mailroom:
        with pytest.raises(Rejected) as rejected:
            await smtp(mailroom.port).send(context(http), TWO)
    assert rejected.value.error == "ana@shop.test was refused: 550 unknown; ben@shop.test was refused: 551 moved"
    assert mailroom.envelopes == []


async def test_each_refused_recipient_is_told_with_its_reply_where_the_message_failed(
    smtp: MakeSmtp, http: httpx2.AsyncClient
) -> None:
    refuse = {"ana@shop.test": "450 greylisted", "ben@shop.test": "550 unknown"}
    async with Mailroom(refuse=refuse).open() as mailroom:
        with capture_logs() as logs, pytest.raises(NotSent) as put_off:
            await smtp(mailroom.port).send(context(http), TWO)
    assert put_off.value.error == "ana@shop.test was refused: 450 greylisted; ben@shop.test was refused: 550 unknown"
    assert [(line["log_level"], line["refused"]) for line in logs] == [("warning", refuse)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ({"greeting": "554 not for you"}, NotSent),
        ({"greeting": Ending.CUT}, NotSent),
        ({"greeting": Ending.SILENCE}, NotSent),
        ({"greeting": "SSH-2.0-OpenSSH"}, NotSent),
        ({"EHLO": Ending.CUT}, NotSent),
        ({"EHLO": "500 what", "HELO": "500 what"}, NotSent),
        ({"MAIL": Ending.SILENCE}, NotSent),
        ({"RCPT": Ending.CUT}, NotSent),
        ({"RCPT": Ending.SILENCE}, NotSent),
        ({"RCPT": "nonsense"}, NotSent),
        ({"DATA": Ending.CUT}, Unconfirmed),
        ({"DATA": Ending.SILENCE}, Unconfirmed),
        ({"message": Ending.CUT}, Unconfirmed),
        ({"message": Ending.SILENCE}, Unconfirmed),
        ({"message": "nonsense"}, Unconfirmed),
        ({"message": "354 go on"}, Unconfirmed),
    ],
)
async def test_a_broken_dialogue_is_doubtful_only_once_data_was_begun(
    smtp: MakeSmtp, http: httpx2.AsyncClient, scripted: ScriptedSmtp, script: dict[str, str], expected: type[Exception]
) -> None:
    scripted.script = script
    hurry: dict[str, Any] = {"envelope_seconds": 0.2} if expected is NotSent else {"answer_seconds": 0.2}
    with pytest.raises(expected):
        await smtp(scripted.port, **hurry).send(context(http), HELLO)
    assert ("DATA" in scripted.seen) is (expected is Unconfirmed)


@pytest.mark.parametrize("farewell", [Ending.CUT, Ending.SILENCE, "500 stay"])
async def test_what_was_accepted_stays_published_however_the_server_says_goodbye(
    smtp: MakeSmtp, http: httpx2.AsyncClient, scripted: ScriptedSmtp, monkeypatch: pytest.MonkeyPatch, farewell: str
) -> None:
    monkeypatch.setattr("postdate.providers.smtp_connections.LEAVE_SECONDS", 0.1)
    scripted.script = {"QUIT": farewell}
    provider = smtp(scripted.port)
    assert (await provider.send(context(http), HELLO)).provider_id == MESSAGE_ID
    await provider.close()
    await asyncio.wait_for(scripted.left.wait(), 5)


async def test_the_server_is_told_goodbye_after_a_refusal_too(
    smtp: MakeSmtp, http: httpx2.AsyncClient, scripted: ScriptedSmtp
) -> None:
    scripted.script = {"RCPT": "450 later"}
    provider = smtp(scripted.port)
    with pytest.raises(NotSent):
        await provider.send(context(http), HELLO)
    await provider.close()
    assert scripted.seen[-1] == "QUIT"


async def test_a_cut_off_run_leaves_no_connection_behind(
    smtp: MakeSmtp, http: httpx2.AsyncClient, scripted: ScriptedSmtp
) -> None:
    scripted.script = {"RCPT": Ending.SILENCE}
    run = asyncio.create_task(smtp(scripted.port).send(context(http), HELLO))
    await scripted.silent.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await asyncio.wait_for(scripted.left.wait(), 1)
    assert "QUIT" not in scripted.seen, "there is no time for a goodbye"


async def test_a_silent_server_is_left_without_a_word(
    smtp: MakeSmtp, http: httpx2.AsyncClient, scripted: ScriptedSmtp
) -> None:
    scripted.script = {"RCPT": Ending.SILENCE}
    with pytest.raises(NotSent, match=r"no answer within 0\.2 seconds"):
        await smtp(scripted.port, envelope_seconds=0.2).send(context(http), HELLO)
    await asyncio.wait_for(scripted.left.wait(), 1)
    assert "QUIT" not in scripted.seen


async def test_a_closed_port_and_an_unknown_host_are_not_sent(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        with pytest.raises(NotSent, match="before the message"):
            await smtp(taken.getsockname()[1]).send(context(http), HELLO)
    with pytest.raises(NotSent, match=r"nowhere\.invalid"):
        await smtp(25, "smtp://nowhere.invalid").send(context(http), HELLO)


def _server_tls(authority: trustme.CA) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    return tls


def _client_tls(authority: trustme.CA) -> ssl.SSLContext:
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    return tls


async def test_starttls_then_sign_in_with_a_percent_encoded_password(
    smtp: MakeSmtp, http: httpx2.AsyncClient, authority: trustme.CA
) -> None:
    url = "smtp+starttls://shop:p%40ss%2Fw%3Ard%25@127.0.0.1:{port}"
    options: dict[str, Any] = {"authenticator": authenticator, "auth_required": True, "require_starttls": True}
    async with Mailroom().open(tls_context=_server_tls(authority), **options) as mailroom:
        await smtp(mailroom.port, url, tls=_client_tls(authority)).send(context(http), HELLO)
    assert len(mailroom.envelopes) == 1


async def test_smtps_speaks_tls_from_the_first_byte(
    smtp: MakeSmtp, http: httpx2.AsyncClient, authority: trustme.CA
) -> None:
    async with Mailroom().open(tls=_server_tls(authority)) as mailroom:
        provider = smtp(mailroom.port, "smtps://127.0.0.1:{port}", tls=_client_tls(authority))
        await provider.send(context(http), HELLO)
    assert len(mailroom.envelopes) == 1


@pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])
async def test_nothing_is_sent_to_a_server_whose_certificate_nobody_trusts(
    smtp: MakeSmtp, http: httpx2.AsyncClient, authority: trustme.CA, scheme: str
) -> None:
    tls = _server_tls(authority)
    options: dict[str, Any] = {"tls": tls} if scheme == "smtps" else {"tls_context": tls}
    async with Mailroom().open(**options) as mailroom:
        with pytest.raises(NotSent, match=r"(?i)certificate"):
            await smtp(mailroom.port, f"{scheme}://127.0.0.1:{{port}}").send(context(http), HELLO)
    assert mailroom.envelopes == []


async def test_starttls_is_never_left_out_because_the_server_lacks_it(smtp: MakeSmtp, http: httpx2.AsyncClient) -> None:
    async with Mailroom().open() as mailroom:
        with pytest.raises(NotSent, match="STARTTLS"):
            await smtp(mailroom.port, "smtp+starttls://127.0.0.1:{port}").send(context(http), HELLO)
    assert mailroom.envelopes == []


@pytest.mark.parametrize(
    ("url", "script"),
    [
        ("smtps://127.0.0.1:{port}", {"greeting": Ending.SILENCE}),
        ("smtp+starttls://127.0.0.1:{port}", {"EHLO": "250-mx.test\r\n250 STARTTLS", "STARTTLS": Ending.SILENCE}),
        ("smtp+starttls://127.0.0.1:{port}", {"EHLO": "250-mx.test\r\n250 STARTTLS", "STARTTLS": "220 go on"}),
        ("smtp://shop:hunter2@127.0.0.1:{port}", {"EHLO": "250-mx.test\r\n250 AUTH PLAIN", "AUTH": Ending.SILENCE}),
    ],
    ids=["TLS", "STARTTLS", "TLS after STARTTLS", "AUTH"],
)
async def test_a_server_that_falls_silent_before_it_is_private_or_knows_us_is_left_in_time(
    smtp: MakeSmtp, http: httpx2.AsyncClient, scripted: ScriptedSmtp, url: str, script: dict[str, str]
) -> None:
    scripted.script = script
    with pytest.raises(NotSent, match=r"no answer within 0\.2 seconds") as left:
        await asyncio.wait_for(smtp(scripted.port, url, envelope_seconds=0.2).send(context(http), HELLO), 10)
    assert "hunter2" not in str(left.value)
    assert "MAIL" not in scripted.seen


async def test_a_wrong_password_sends_nothing_and_is_not_the_messages_fault(
    smtp: MakeSmtp, http: httpx2.AsyncClient, authority: trustme.CA
) -> None:
    url = "smtp+starttls://shop:hunter2hunter2@127.0.0.1:{port}"
    options: dict[str, Any] = {"authenticator": authenticator, "auth_required": True}
    async with Mailroom().open(tls_context=_server_tls(authority), **options) as mailroom:
        with pytest.raises(NotSent, match=r"not signed in.* 535 ") as refused:
            await smtp(mailroom.port, url, tls=_client_tls(authority)).send(context(http), HELLO)
    assert "hunter2" not in str(refused.value)
    assert mailroom.envelopes == []


@pytest.mark.parametrize(
    ("url", "host", "port", "security"),
    [
        ("smtp://localhost", "localhost", 25, Security.NONE),
        ("SMTPS://Mail.Example.com/", "mail.example.com", 465, Security.TLS),
        ("smtp+starttls://mail_relay", "mail_relay", 587, Security.STARTTLS),
        ("smtp://[::1]:2525", "::1", 2525, Security.NONE),
        ("smtp://bücher.example:26", "xn--bcher-kva.example", 26, Security.NONE),
    ],
)
def test_the_scheme_decides_the_port_and_the_security(url: str, host: str, port: int, security: Security) -> None:
    assert SmtpServer.parse(url) == SmtpServer(host=host, port=port, security=security)


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        f"http://u:{SECRET}@h",
        f"u:{SECRET}@h",
        f"smtp://u:{SECRET}@",
        f"smtp://u:{SECRET}@h:0",
        f"smtp://u:{SECRET}@h:65536",
        f"smtp://u:{SECRET}@h:25x",
        f"smtp://u:{SECRET}/x@h",
        f"smtp://u:{SECRET}#@h",
        f"smtp://u:{SECRET}@h?x=1",
        f"smtp://:{SECRET}@h",
        f"smtp://{SECRET}@h",
        f"smtp://u:{SECRET}%ff@h",
        f"smtp://u:{SECRET}@[::1",
        f"smtp://u:{SECRET}@-h-",
        f"smtp://u:{SECRET}@a..b",
        f"smtp://u:{SECRET}@h\u2100x",
        f"smtp://u:{SECRET}@{'h' * 3000}",
    ],
)
def test_a_broken_address_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(ValueError) as refused:
        SmtpServer.parse(url)
    assert SECRET not in str(refused.value)


def test_a_server_never_shows_its_password(smtp: MakeSmtp) -> None:
    assert SECRET not in repr(smtp(25, f"smtp://u:{SECRET}@h"))
