"""Where can a request go, and where can it not, however the way there is written?"""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING

import httpx2
import pytest
from structlog.testing import capture_logs

from postdate import Context, InvalidPayload, Misconfigured, NotConfigured, Postdate, Settings
from postdate.domain.outcome import NotSent, Published, Rejected
from postdate.providers.builtin import builtin_action_types
from postdate.providers.egress import AddressRefused, Allowed, Egress, is_public
from postdate.providers.guard import MAX_TRIED
from postdate.providers.http import http_client
from postdate.providers.webhook import CallWebhook, Webhook
from tests.surfaces.providers.contexts import context
from tests.surfaces.providers.listeners import listening

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import trustme

PAST = datetime(2026, 1, 1, tzinfo=UTC)

HERE = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0X7F.0.0.0x1",
    "017700000001",
    "0177.1",
    "127.0.0.1.",
    "127。0。0。1",
    "0.0.0.0",
    "0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "hooks.localhost",
    "[::ffff:127.0.0.1]",
    "[0:0:0:0:0:ffff:7f00:1]",
]
"""Ways to write an address of this machine over IPv4."""
NOT_PUBLIC = [
    *HERE,
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a00:1]",
    "[64:ff9b:1::a00:1]",
    "[2002:7f00:1::]",
    "[2002:a00:1::1]",
    "[2001:0:808:808:0:0:f7f7:f7f7]",
    "10.0.0.1",
    "10.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fe80::a9fe:a9fe%251]",
    "[2606:4700:4700::1111%25eth0]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fec0::1]",
    "0.0.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "[ff02::1]",
    "[ff0e::1]",
    "240.0.0.1",
    "255.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "168.63.129.16",
    "[100::1]",
    "[2001:db8::1]",
    "[4000::1]",
    "[5f00::1]",
]
PUBLIC = [
    "example.com",
    "bücher.example",
    "8.8.8.8",
    "134744072",
    "172.32.0.1",
    "100.128.0.1",
    "[2606:4700:4700::1111]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::8.8.8.8]",
    "[2002:808:808::1]",
]


class Resolver:
    """Gives one answer after the other, the last one for ever, and counts how often it was asked."""

    def __init__(self, *answers: Sequence[str] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def client(allow: str = "", *answers: Sequence[str] | Exception) -> httpx2.AsyncClient:
    return http_client(Settings(egress_allow=allow), resolve=Resolver(*answers) if answers else never)


async def never(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host} needs no resolver")


async def call(http: httpx2.AsyncClient, url: str) -> Published:
    """Call what may stand in a database already, whatever is let in today."""
    return await Webhook().call(context(http), CallWebhook.model_construct(url=url, body={}))


# --- what is public ---------------------------------------------------------------------------------------


async def test_an_address_that_is_not_public_is_refused_without_a_connection_however_it_is_written() -> None:
    async with listening() as seen, client() as http:
        for host in NOT_PUBLIC:
            url = f"http://{host}:{seen.port}/"
            for way in (lambda url: call(http, url), http.get):
                with pytest.raises(AddressRefused, match="POSTDATE_EGRESS_ALLOW") as refused:
                    await way(url)
                assert isinstance(refused.value, Rejected), "trying again would change nothing"
                assert (refused.value.port, seen.connections) == (seen.port, 0), host


async def test_each_way_to_write_this_machine_would_have_reached_it() -> None:
    for host in HERE:
        async with listening() as seen, client("0.0.0.0/0, ::/0") as http:
            assert await call(http, f"http://{host}:{seen.port}/") == Published()
        assert seen.connections == 1, host


def refusal_of(url: str) -> str | None:
    """Return which field keeps a call from being scheduled; None where nothing does."""
    (webhook,) = (each for each in builtin_action_types(Settings(webhook_allow_http=True)) if "webhook" in each.name)
    try:
        webhook.dump({"url": url})
    except InvalidPayload as refused:
        return refused.field
    return None


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_that_is_not_public_is_refused_when_it_is_scheduled(scheme: str) -> None:
    assert {host: refusal_of(f"{scheme}://{host}/") for host in NOT_PUBLIC} == dict.fromkeys(NOT_PUBLIC, "payload.url")


def test_a_public_address_is_let_in() -> None:
    assert {host: refusal_of(f"https://{host}/") for host in PUBLIC} == dict.fromkeys(PUBLIC)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("1.1.1.1", True),
        ("9.255.255.255", True),
        ("10.0.0.0", False),
        ("223.255.255.255", True),
        ("224.0.0.0", False),
        ("191.255.255.255", True),
        ("192.0.0.9", False),
        ("192.0.1.0", True),
        ("2001:4860:4860::8888", True),
        ("2001:20::1", False),
        ("1fff::1", False),
        ("2000::1", True),
        ("3ffe::1", True),
        ("64:ff9b::ffff:ffff", False),
        ("64:ff9b:0:0:0:1:808:808", False),
    ],
)
def test_the_borders_of_what_is_public(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


async def test_a_row_from_a_laxer_time_fails_as_rejected_and_connects_nowhere(sqlite_url: str) -> None:
    async with listening() as seen:
        allowed = Settings(egress_allow="127.0.0.1", webhook_allow_http=True, database_url=sqlite_url)
        lax, strict = Postdate(settings=allowed), Postdate(settings=allowed.model_copy(update={"egress_allow": ""}))
        for app in (lax, strict):
            app.include(*(each for each in builtin_action_types(app.settings) if each.name == "call_webhook"))
        payload = {"url": f"http://127.0.0.1:{seen.port}/"}
        with pytest.raises(InvalidPayload, match="POSTDATE_EGRESS_ALLOW"):
            await strict.schedule("call_webhook", payload, at=PAST)
        action = await lax.schedule("call_webhook", payload, at=PAST)
        await strict.tick()
        action = await lax.get(action.id)
        await lax.close()
        await strict.close()
    assert (action.status, action.reason, action.attempt_count) == ("failed", "rejected", 1)
    assert action.last_error is not None
    assert "not public" in action.last_error
    assert seen.connections == 0


async def test_a_handler_of_ones_own_is_guarded_too(sqlite_url: str) -> None:
    app = Postdate(sqlite_url, settings=Settings(egress_allow=""))

    @app.action("look")
    async def look(ctx: Context, payload: dict[str, str]) -> None:
        await ctx.http.get(payload["url"])

    async with listening() as seen:
        action = await app.schedule("look", {"url": f"http://127.1:{seen.port}/"}, at=PAST)
        await app.tick()
    action = await app.get(action.id)
    await app.close()
    assert (action.status, action.reason, seen.connections) == ("failed", "rejected", 0)


# --- names ------------------------------------------------------------------------------------------------


async def test_a_name_that_leads_elsewhere_a_moment_later_is_connected_to_where_it_was_checked() -> None:
    """DNS rebinding: the answer that was checked is the one that is used."""
    resolver = Resolver(["127.0.0.1"], ["127.0.0.2"])
    settings = Settings(egress_allow="127.0.0.1")
    async with listening("127.0.0.1") as good, listening("127.0.0.2", good.port) as evil:
        good.answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
        async with http_client(settings, resolve=resolver) as http:
            url = f"http://hooks.test:{good.port}/"
            assert await call(http, url) == Published()
            assert resolver.asked == [("hooks.test", good.port)], "asked once, and nobody else was"
            with pytest.raises(AddressRefused) as refused:
                await call(http, url)
    assert refused.value.address == ip_address("127.0.0.2")
    assert (good.connections, evil.connections) == (1, 0)
    assert good.hosts == [f"hooks.test:{good.port}"]


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
        ["2606:4700:4700::1111", "8.8.8.8", "10.0.0.1"],
        ["fe80::1%lo"],
        [*(f"8.8.8.{n}" for n in range(8)), "127.0.0.1"],
    ],
)
async def test_a_name_that_also_leads_inside_is_refused_and_its_addresses_are_told_to_the_log_alone(
    answer: list[str],
) -> None:
    async with listening() as seen, client("", answer) as http:
        with capture_logs() as logs, pytest.raises(AddressRefused) as refused:
            await call(http, f"http://hooks.test:{seen.port}/")
    assert seen.connections == 0
    assert refused.value.error == (
        f"hooks.test:{seen.port} leads to an address that is not public (POSTDATE_EGRESS_ALLOW lets others through)"
    )
    (line,) = logs
    assert line["event"] == "egress refused"
    assert line["host"] == "hooks.test"
    assert line["address"] == str(refused.value.address)


@pytest.mark.parametrize(
    "answer", [[], socket.gaierror(socket.EAI_NONAME, "unknown"), UnicodeError("label too long"), TimeoutError()]
)
async def test_a_name_without_an_address_is_not_sent(answer: list[str] | Exception) -> None:
    async with client("", answer) as http:
        with pytest.raises(NotSent, match=r"not connected: .*hooks\.test"):
            await call(http, "http://hooks.test/")


async def test_a_resolver_that_never_answers_is_given_up_within_the_time_to_connect() -> None:
    async def silent(host: str, port: int) -> Sequence[str]:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async with http_client(Settings(), resolve=silent) as http:
        http.timeout = httpx2.Timeout(10, connect=0.05)
        with pytest.raises(NotSent, match="not resolved in time"):
            await call(http, "http://hooks.test/")


async def test_the_next_address_is_tried_where_the_first_is_dead() -> None:
    async with listening("127.0.0.1") as seen, client("hooks.test", ["127.0.0.2", "127.0.0.1"]) as http:
        assert await call(http, f"http://hooks.test:{seen.port}/") == Published()
    assert seen.connections == 1


async def test_an_address_that_takes_no_connection_leaves_time_for_the_next() -> None:
    async with listening("127.0.0.1") as seen, client("hooks.test", ["127.0.0.2", "127.0.0.1"]) as http:
        http.timeout = httpx2.Timeout(10, connect=1)
        with socket.socket() as full:
            full.bind(("127.0.0.2", seen.port))
            full.listen(0)
            with socket.create_connection(full.getsockname()):
                assert await call(http, f"http://hooks.test:{seen.port}/") == Published()


async def test_not_every_address_of_a_long_answer_is_tried() -> None:
    dead = [f"127.0.0.{n}" for n in range(2, 2 + MAX_TRIED)]
    async with listening("127.0.0.1") as seen, client("hooks.test", [*dead, "127.0.0.1"]) as http:
        with pytest.raises(NotSent, match="not connected"):
            await call(http, f"http://hooks.test:{seen.port}/")
    assert seen.connections == 0


async def test_the_system_resolver_is_asked_where_none_is_given() -> None:
    async with listening("127.0.0.1") as seen, http_client(Settings(egress_allow="127.0.0.1")) as http:
        assert (await http.get(f"http://127.0.0.1:{seen.port}/")).status_code == 204
        with pytest.raises(httpx2.ConnectError, match=r"nowhere\.invalid was not resolved"):
            await http.get("http://nowhere.invalid/")


# --- around it --------------------------------------------------------------------------------------------


async def test_tls_asks_for_the_name_and_verifies_it_although_an_address_is_connected_to(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr("postdate.providers.guard.web_trust", lambda: trusting)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("hooks.test").configure_cert(server)
    asked: list[str] = []
    server.sni_callback = lambda _socket, name, _context: asked.append(name)

    async with listening("127.0.0.1", tls=server) as seen, client("127.0.0.1", ["127.0.0.1"]) as http:
        assert await call(http, f"https://hooks.test:{seen.port}/") == Published()
        with pytest.raises(NotSent, match=r"(?i)hostname mismatch|not valid for 'other\.test'"):
            await call(http, f"https://other.test:{seen.port}/")
    assert asked == ["hooks.test", "other.test"]
    assert seen.hosts == [f"hooks.test:{seen.port}"]


async def test_a_handler_that_follows_redirects_is_stopped_at_the_hop_that_leads_inside() -> None:
    async with listening("127.0.0.1") as seen, listening("127.0.0.2", seen.port) as inside:
        seen.answer = (
            f"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: http://127.0.0.2:{seen.port}/\r\n\r\n".encode()
        )
        async with client("127.0.0.1") as http:
            with pytest.raises(AddressRefused):
                await http.get(f"http://127.0.0.1:{seen.port}/", follow_redirects=True)
    assert (seen.connections, inside.connections) == (1, 0)


async def test_what_was_refused_takes_no_place_among_the_connections() -> None:
    async with listening("127.0.0.1") as seen, client("127.0.0.1") as http:
        refused = [http.get(f"http://127.0.0.2:{seen.port}/") for _ in range(300)]
        assert {type(each) for each in await asyncio.gather(*refused, return_exceptions=True)} == {AddressRefused}
        http.timeout = httpx2.Timeout(1)
        assert await call(http, f"http://127.0.0.1:{seen.port}/") == Published()


async def test_proxies_of_the_environment_are_no_way_around(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening("127.0.0.1") as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with client() as http:
            with pytest.raises(AddressRefused):
                await http.get("http://169.254.169.254/latest/meta-data")
    assert proxy.connections == 0


def test_a_version_of_httpx2_that_cannot_be_guarded_is_told_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "__init__", lambda self, **_: None)
    with pytest.raises(Misconfigured, match="cannot be guarded"):
        http_client(Settings())


# --- what is allowed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allow", "host", "reached"),
    [
        ("127.0.0.1:{port}", "127.0.0.1", True),
        ("127.0.0.1:{port}", "127.1", True),
        ("127.0.0.1:{port}", "localhost", False),
        ("127.0.0.1:{port},[::1]:{port}", "localhost", True),
        ("localhost:{port}", "localhost", True),
        ("LocalHost", "localhost.", True),
        ("localhost", "127.0.0.1", False),
        ("localhost", "hooks.localhost", False),
        ("127.0.0.1:1", "127.0.0.1", False),
        ("127.0.0.2/31", "127.0.0.1", False),
        ("10.0.0.0/8\t127.0.0.0/8", "127.0.0.1", True),
        ("127.0.0.0/8", "[::ffff:127.0.0.1]", True),
        ("::/0", "127.0.0.1", False),
        ("127.0.0.1", "hooks.test", True),
        ("hooks.test", "hooks.test", True),
        ("HOOKS.test:{port}", "Hooks.Test", True),
        ("test", "hooks.test", False),
        ("ooks.test", "hooks.test", False),
        ("hooks.test:1", "hooks.test", False),
    ],
)
async def test_what_is_not_public_is_reached_where_an_entry_covers_host_and_port(
    allow: str, host: str, reached: bool
) -> None:
    async with listening("127.0.0.1") as seen, client(allow.format(port=seen.port), ["127.0.0.1"]) as http:
        if reached:
            assert await call(http, f"http://{host}:{seen.port}/") == Published()
        else:
            with pytest.raises(AddressRefused):
                await call(http, f"http://{host}:{seen.port}/")
    assert seen.connections == int(reached)


def test_what_an_entry_allows_is_let_in_when_it_is_scheduled() -> None:
    settings = Settings(egress_allow="10.1.0.0/16:8443, 10.2.0.1:443", webhook_allow_http=True)
    (webhook,) = (each for each in builtin_action_types(settings) if each.name == "call_webhook")
    assert webhook.dump({"url": "https://10.1.2.3:8443/"})
    assert webhook.dump({"url": "https://10.2.0.1/"})
    for url in ("https://10.1.2.3/", "http://10.2.0.1/", "https://10.2.0.1:80/"):
        with pytest.raises(InvalidPayload, match="not public"):
            webhook.dump({"url": url})


@pytest.mark.parametrize(
    ("entry", "where", "port"),
    [
        ("hooks.internal", "hooks.internal", None),
        ("Hooks.Internal:8443", "hooks.internal", 8443),
        ("bücher.example", "xn--bcher-kva.example", None),
        ("my_service:80", "my_service", 80),
        ("localhost", "localhost", None),
        ("127.0.0.1", "127.0.0.1/32", None),
        ("10.1.0.0/16:65535", "10.1.0.0/16", 65535),
        ("::1", "::1/128", None),
        ("[::1]", "::1/128", None),
        ("[fd00::/8]:443", "fd00::/8", 443),
        ("fd00::/8", "fd00::/8", None),
    ],
)
def test_an_entry_is_a_name_an_address_or_a_network_with_or_without_a_port(
    entry: str, where: str, port: int | None
) -> None:
    allowed = Allowed.parse(entry)
    assert (str(allowed.where), allowed.port) == (where, port)


@pytest.mark.parametrize(
    "entry",
    [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "300.0.0.1/8",
        "127.1",
        "2130706433",
        "0x7f.1",
        "http://hooks.internal",
        "hooks.internal/path",
        "*.internal",
        ".internal",
        "hooks.internal:0",
        "hooks.internal:65536",
        "hooks.internal:http",
        "::1:8080:x",
        "[::1",
        "::1]",
        "[]:80",
        ":80",
        "user@hooks.internal",
        "a" * 64,
    ],
)
def test_an_entry_that_cannot_be_understood_is_told_before_anything_is_claimed(entry: str) -> None:
    settings = Settings(egress_allow=f"hooks.internal, {entry}")
    with pytest.raises(
        NotConfigured, match=r"needs POSTDATE_EGRESS_ALLOW: entry 2 must|entry 2 a host name"
    ) as garbled:
        http_client(settings)
    assert garbled.value.setting == "POSTDATE_EGRESS_ALLOW"
    (webhook,) = (each for each in builtin_action_types(settings) if each.name == "call_webhook")
    assert webhook.configured is not None
    with pytest.raises(NotConfigured, match="POSTDATE_EGRESS_ALLOW"):
        webhook.configured()


async def test_an_engine_with_a_garbled_setting_does_not_start(sqlite_url: str, tmp_path: Path) -> None:
    app = Postdate(sqlite_url, settings=Settings(egress_allow="*"))
    with pytest.raises(NotConfigured, match="POSTDATE_EGRESS_ALLOW"):
        await app.tick()
    await app.close()


def test_nothing_beside_what_is_public_is_allowed_by_default() -> None:
    assert Egress.of(Settings()) == Egress()
