"""What becomes of an address that says it is gone?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from postdate import DisabledEndpoint, EndpointNotDisabled, Invalid, OwnerNotFound, Postdate, Settings
from postdate.domain.outcome import Published, Rejected, Unconfirmed
from postdate.providers.builtin import builtin_action_types
from postdate.providers.web_url import endpoint
from postdate.providers.webhook import CallWebhook, Webhook
from postdate.store.endpoints import disable_if_action_exists
from tests.surfaces.providers.contexts import NOW, context
from tests.surfaces.providers.http_receiver import HttpReceiver, answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from postdate import Action

PAST = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = UUID(int=0)
"""The system profile, which owns what nobody else does."""


def begun(database_url: str, **settings: Any) -> Postdate:
    given: dict[str, Any] = {
        "webhook_allow_http": True,
        "egress_allow": "127.0.0.1",
        "webhook_secret": "whsec_" + "A" * 32,
    }
    app = Postdate(settings=Settings(database_url=database_url, **(given | settings)))
    app.include(*(each for each in builtin_action_types(app.settings) if each.configured is None))
    return app


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Postdate]:
    opened = begun(database_url)
    yield opened
    await opened.close()


async def called(app: Postdate, url: str, **more: Any) -> Action:
    """Schedule a call for the past, fire it, and return what became of it."""
    action = await app.schedule("call_webhook", {"url": url}, at=PAST, **more)
    await app.tick()
    return await app.get(action.id)


async def a_workspace(app: Postdate) -> UUID:
    workspace = uuid4()
    async with app.kernel.database.async_engine.begin() as connection:
        schema = "" if app.kernel.database.is_sqlite else "postdate."
        await connection.execute(text(f"insert into {schema}workspaces (id) values ('{workspace}')"))
    return workspace


async def test_an_endpoint_that_is_gone_is_called_no_more_by_any_process(
    app: Postdate, receiver: HttpReceiver, database_url: str
) -> None:
    receiver.answer = answer("410 Gone", body=b"moved away")
    first = await called(app, receiver.url)
    assert (first.status, first.reason) == ("failed", "rejected")
    assert first.last_error == "answered 410: moved away"

    receiver.answer = answer("204 No Content")
    other = begun(database_url)
    second = await called(other, receiver.url)
    await other.close()
    assert (second.status, second.reason, second.attempt_count) == ("failed", "rejected", 1)
    assert second.last_error is not None
    assert "this endpoint is disabled" in second.last_error
    assert len(receiver.requests) == 1


async def test_other_addresses_of_the_same_host_are_called_on(app: Postdate, receiver: HttpReceiver) -> None:
    receiver.answer = answer("410 Gone")
    await called(app, receiver.url)
    receiver.answer = answer("204 No Content")
    assert (await called(app, receiver.url + "&more")).status == "published"


@pytest.mark.parametrize("change", [("http://", "HTTP://"), ("?of=shop", "?of=shop#part")])
async def test_the_same_address_in_another_spelling_is_the_same_endpoint(
    app: Postdate, receiver: HttpReceiver, change: tuple[str, str]
) -> None:
    receiver.answer = answer("410 Gone")
    await called(app, receiver.url)
    assert (await called(app, receiver.url.replace(*change))).reason == "rejected"
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("url", "known_as"),
    [
        ("HTTPS://Example.COM:443/a?b#c", "https://example.com/a?b"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://example.com", "https://example.com"),
    ],
)
def test_an_endpoint_is_known_by_what_is_sent_to_its_host(url: str, known_as: str) -> None:
    assert endpoint(url) == known_as


@pytest.mark.parametrize("status", [404, 401, 500])
async def test_only_410_disables(http: httpx2.AsyncClient, receiver: HttpReceiver, status: int) -> None:
    receiver.answer, ctx = answer(f"{status} No"), context(http)
    with pytest.raises((Rejected, Unconfirmed)):
        await Webhook().call(ctx, CallWebhook(url=receiver.url))
    receiver.answer = answer("204 No Content")
    assert await Webhook().call(ctx, CallWebhook(url=receiver.url)) == Published()


async def test_what_one_workspace_is_told_disables_nothing_of_another(app: Postdate, receiver: HttpReceiver) -> None:
    ours, theirs = await a_workspace(app), await a_workspace(app)
    receiver.answer = answer("410 Gone")
    await called(app, receiver.url, workspace=ours)
    receiver.answer = answer("204 No Content")
    assert (await called(app, receiver.url, workspace=theirs)).status == "published"
    assert (await called(app, receiver.url)).status == "published"
    assert (await called(app, receiver.url, workspace=ours)).reason == "rejected"


async def test_once_it_is_enabled_a_retry_of_what_was_refused_goes_out(app: Postdate, receiver: HttpReceiver) -> None:
    receiver.answer = answer("410 Gone")
    gone = await called(app, receiver.url)
    receiver.answer = answer("204 No Content")
    await app.retry(gone.id)
    await app.tick()
    assert (await app.get(gone.id)).reason == "rejected", "retrying alone changes nothing"

    enabled = await app.enable_endpoint(receiver.url, actor="ana", note="they moved back")
    assert (enabled.url, enabled.action_id) == (endpoint(receiver.url), gone.id)
    await app.retry(gone.id)
    await app.tick()
    assert (await app.get(gone.id)).status == "published"


async def test_who_enabled_it_stands_in_the_history_of_the_action_that_found_it_gone(
    app: Postdate, receiver: HttpReceiver
) -> None:
    receiver.answer = answer("410 Gone")
    gone = await called(app, receiver.url)
    await app.enable_endpoint(receiver.url, actor="ana", note="they moved back")
    event = (await app.history(gone.id))[-1]
    assert (event.cause, event.actor) == ("endpoint_enabled", "ana")
    assert event.detail == {"url": endpoint(receiver.url), "note": "they moved back"}
    assert (await app.get(gone.id)).reason == "rejected", "what was refused stays so until it is retried"


async def test_an_endpoint_is_enabled_once_and_for_its_owner_alone(app: Postdate, receiver: HttpReceiver) -> None:
    ours, theirs = await a_workspace(app), await a_workspace(app)
    receiver.answer = answer("410 Gone")
    for owner in (ours, theirs, None):
        await called(app, receiver.url, workspace=owner)
    assert [each.workspace_id for each in await app.disabled_endpoints()] == [None, theirs, ours]
    (one,) = await app.disabled_endpoints(workspace=str(ours), user=OWNER)
    assert (one.workspace_id, one.user_id, one.url) == (ours, OWNER, endpoint(receiver.url))
    assert await app.enable_endpoint(receiver.url.replace("http://", "HTTP://") + "#part", workspace=ours) == one
    assert [each.workspace_id for each in await app.disabled_endpoints()] == [None, theirs]
    with pytest.raises(EndpointNotDisabled) as refused:
        await app.enable_endpoint(receiver.url, workspace=ours)
    assert refused.value.ident == endpoint(receiver.url)


async def test_enabling_is_undone_with_the_callers_transaction(app: Postdate, receiver: HttpReceiver) -> None:
    receiver.answer = answer("410 Gone")
    gone = await called(app, receiver.url)
    with app.kernel.database.sync_engine.connect() as connection:
        app.sync.enable_endpoint(receiver.url, connection=connection)
        assert app.sync.disabled_endpoints(connection=connection) == []
        connection.rollback()
    assert [each.action_id for each in await app.disabled_endpoints()] == [gone.id]
    assert "endpoint_enabled" not in {event.cause for event in await app.history(gone.id)}


async def test_of_those_who_enable_at_once_one_does(app: Postdate, receiver: HttpReceiver) -> None:
    receiver.answer = answer("410 Gone")
    gone = await called(app, receiver.url, workspace=(ours := await a_workspace(app)))
    enabling = [app.enable_endpoint(receiver.url, workspace=ours) for _ in range(4)]
    told = await asyncio.gather(*enabling, return_exceptions=True)
    assert sorted(type(each).__name__ for each in told) == ["DisabledEndpoint", *["EndpointNotDisabled"] * 3]
    assert [event.cause for event in await app.history(gone.id)].count("endpoint_enabled") == 1


async def test_nothing_is_left_of_an_owner_who_is_deleted_while_somebody_enables(
    app: Postdate, receiver: HttpReceiver
) -> None:
    receiver.answer, tables = answer("410 Gone"), "" if app.kernel.database.is_sqlite else "postdate."

    async def deleted(owner: UUID) -> None:
        async with app.kernel.database.async_engine.begin() as connection:
            await connection.execute(text(f"delete from {tables}workspaces where id = '{owner}'"))

    for _ in range(4):
        ours = await a_workspace(app)
        await called(app, receiver.url, workspace=ours)
        enabling = app.enable_endpoint(receiver.url, workspace=ours)
        told, gone = await asyncio.gather(enabling, deleted(ours), return_exceptions=True)
        assert isinstance(told, DisabledEndpoint | EndpointNotDisabled | OwnerNotFound)
        assert gone is None, "neither waits for the other for ever"
    async with app.kernel.database.async_engine.connect() as connection:
        for table in ("action_events", "disabled_endpoints"):
            assert (await connection.execute(text(f"select count(*) from {tables}{table}"))).scalar() == 0


NO_ADDRESS = ["", "nonsense", "ftp://a.example/", "https://a.example:99999/", "https://me:pw@a.example/"]


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_what_is_no_address_is_refused_by_name_and_not_shown(sqlite_url: str, url: str) -> None:
    app = begun(sqlite_url)
    with pytest.raises(Invalid, match=r"^url: must [^@]*$"):
        app.sync.enable_endpoint(url)


async def test_a_network_that_is_gone_is_handed_no_more_posts(sqlite_url: str, receiver: HttpReceiver) -> None:
    app = begun(sqlite_url, networks={"x": receiver.url, "y": receiver.url + "&y"})
    receiver.answer = answer("410 Gone")
    for n, target in enumerate(("x", "x", "y")):
        await app.schedule("publish_post", {"thing_id": f"p{n}", "text": "Hi"}, target=target, at=PAST)
        await app.tick()
    await app.close()
    assert len(receiver.requests) == 2


async def test_a_disabled_endpoint_goes_with_its_owner(app: Postdate, receiver: HttpReceiver) -> None:
    ours = await a_workspace(app)
    receiver.answer = answer("410 Gone")
    await called(app, receiver.url, workspace=ours)
    await called(app, receiver.url)
    async with app.kernel.database.async_engine.begin() as connection:
        schema = "" if app.kernel.database.is_sqlite else "postdate."
        await connection.execute(text(f"delete from {schema}workspaces where id = '{ours}'"))
    assert await app.disabled_endpoints(workspace=ours) == []
    (kept,) = await app.disabled_endpoints()
    assert kept.url == endpoint(receiver.url)


async def test_an_action_that_is_gone_disables_nothing(app: Postdate) -> None:
    changed = await app.kernel.work(
        lambda tx: disable_if_action_exists(tx, owner=OWNER, url="https://a.example/", action_id=uuid4(), now=PAST)
    )
    assert not changed
    assert await app.disabled_endpoints() == []


async def test_the_first_to_be_told_says_since_when_and_the_latest_is_listed_first(app: Postdate) -> None:
    found = await app.schedule("call_webhook", {"url": "https://a.example/"}, at=PAST)
    long = "https://a.example/" + "%C3%BC" * 4000
    for url, now in (
        ("https://a.example/", PAST),
        (long, PAST + timedelta(hours=1)),
        ("https://a.example/", PAST + timedelta(hours=2)),
    ):
        changed = await app.kernel.work(
            lambda tx, url=url, now=now: disable_if_action_exists(  # type: ignore[misc]
                tx, owner=OWNER, url=url, action_id=found.id, now=now
            )
        )
        assert changed is (now < PAST + timedelta(hours=2))
    listed = await app.disabled_endpoints(user=OWNER)
    assert [(each.url, each.disabled_at) for each in listed] == [
        (long, PAST + timedelta(hours=1)),
        ("https://a.example/", PAST),
    ]
    assert await app.disabled_endpoints(limit=1) == listed[:1]
    assert (await app.enable_endpoint(listed[0].url)).url == long, "what is listed is what can be enabled"


async def test_without_a_database_a_context_remembers_for_itself(
    http: httpx2.AsyncClient, receiver: HttpReceiver
) -> None:
    receiver.answer = answer("410 Gone")
    ctx = context(http)
    for said in ("answered 410", f"said on {NOW:%Y-%m-%d} that it is gone"):
        with pytest.raises(Rejected, match=said):
            await Webhook().call(ctx, CallWebhook(url=receiver.url))
    receiver.answer = answer("204 No Content")
    assert await Webhook().call(context(http), CallWebhook(url=receiver.url)) == Published()
    assert len(receiver.requests) == 2
