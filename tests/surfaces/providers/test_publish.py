"""How does a post get to the network of its target, and what comes back?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Invalid, InvalidPayload, NotConfigured, Postdate, Settings
from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.providers.builtin import builtin_action_types
from postdate.providers.publish import Publisher, PublishPost
from postdate.providers.signing import verify_webhook
from tests.surfaces.providers.contexts import ACTION_ID, NOW, context
from tests.surfaces.providers.http_receiver import HttpReceiver, answer

if TYPE_CHECKING:
    import httpx2

    from postdate.registry import ActionType

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAST = datetime(2026, 1, 1, tzinfo=UTC)
POST = PublishPost(
    thing_id="post-1", text="Grüße 🎉", media=["https://cdn.example/a.jpg"], extra={"board": "news", "n": [1, None]}
)


def settings(networks: dict[str, str], **more: Any) -> Settings:
    given: dict[str, Any] = {"webhook_secret": SECRET, "webhook_allow_http": True, "egress_allow": "127.0.0.1"}
    return Settings(networks=networks, **(given | more))


def publish_post(settings: Settings) -> ActionType:
    (found,) = (each for each in builtin_action_types(settings) if each.name == "publish_post")
    return found


async def test_a_post_arrives_signed_at_the_receiver_of_its_target(
    http: httpx2.AsyncClient, receiver: HttpReceiver
) -> None:
    receiver.answer = answer("200 OK", body=b'{"id": "ig-77"}')
    publisher = Publisher.of(settings({"facebook": "https://127.0.0.1:1/", "instagram": receiver.url}))
    outcome = await publisher.publish(context(http, target="instagram"), POST)

    (request,) = receiver.requests
    assert verify_webhook(SECRET, request.headers, request.body, now=NOW) == str(ACTION_ID)
    assert json.loads(request.body) == {
        "type": "publish_post",
        "timestamp": "2027-03-14T09:00:00.250000Z",
        "data": {
            "target": "instagram",
            "thing_id": "post-1",
            "text": "Grüße 🎉",
            "media": ["https://cdn.example/a.jpg"],
            "extra": {"board": "news", "n": [1, None]},
        },
    }
    assert outcome == Published(provider_id="ig-77"), "P28: the network's id is kept"


async def test_every_attempt_is_the_same_webhook(http: httpx2.AsyncClient, receiver: HttpReceiver) -> None:
    publisher = Publisher.of(settings({"x": receiver.url}))
    for attempt in (1, 2):
        await publisher.publish(context(http, target="x", attempt=attempt), POST)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert publish_post(settings({"x": receiver.url})).policy.idempotent


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b'{"id": 77}', [], "77"),
        (b'{"id": "p"}', ["x-request-id: r"], "p"),
        (b'{"id": ""}', ["x-request-id: r"], "r"),
        (b'{"id": true}', ["x-request-id: r"], "r"),
        (b'{"id": null}', ["x-request-id: r"], "r"),
        (b'{"id": {"a": 1}}', [], None),
        (b'["id"]', ["x-request-id: r"], "r"),
        (b"thanks", [], None),
        (b"", [], None),
        (b"\xff\xfe", [], None),
        (b"[" * 16_000, [], None),
        (b'{"id": "p", "filler": "' + b"x" * 20_000 + b'"}', ["x-request-id: r"], "r"),
    ],
    ids=range(12),
)
async def test_the_id_that_the_answer_tells_is_kept_and_nothing_else_is_read_from_it(
    http: httpx2.AsyncClient, receiver: HttpReceiver, body: bytes, headers: list[str], expected: str | None
) -> None:
    receiver.answer = answer("200 OK", *headers, body=body)
    outcome = await Publisher.of(settings({"x": receiver.url})).publish(context(http, target="x"), POST)
    assert outcome == Published(provider_id=expected)


@pytest.mark.parametrize(("status", "expected"), [(429, NotSent), (422, Rejected), (500, Unconfirmed)])
async def test_the_answer_means_what_that_to_a_webhook_means(
    http: httpx2.AsyncClient, receiver: HttpReceiver, status: int, expected: type[Exception]
) -> None:
    receiver.answer = answer(f"{status} Whatever")
    with pytest.raises(expected, match=f"answered {status}"):
        await Publisher.of(settings({"x": receiver.url})).publish(context(http, target="x"), POST)


@pytest.mark.parametrize("target", [None, "myspace", "Instagram", "instagram "])
async def test_a_target_without_a_receiver_is_refused_when_scheduled_and_rejected_when_it_was_before(
    http: httpx2.AsyncClient, target: str | None
) -> None:
    given = settings({"instagram": "https://127.0.0.1:1/", "facebook": "https://127.0.0.1:1/"})
    with pytest.raises(Invalid, match=r"is none of POSTDATE_NETWORKS \(known: facebook, instagram\)") as refused:
        publish_post(given).dump(POST, target=target)
    assert refused.value.field == "target"
    with pytest.raises(Rejected, match="POSTDATE_NETWORKS"):
        await Publisher.of(given).publish(context(http, target=target), POST)


async def test_posts_are_scheduled_to_known_targets_and_fail_for_good_once_a_target_is_gone(
    sqlite_url: str, receiver: HttpReceiver
) -> None:
    before = settings({"x": receiver.url, "y": receiver.url}, database_url=sqlite_url)
    today = settings({"x": receiver.url}, database_url=sqlite_url)
    app, later = Postdate(settings=before), Postdate(settings=today)
    app.include(publish_post(before))
    later.include(publish_post(today))
    with pytest.raises(Invalid, match="POSTDATE_NETWORKS"):
        await app.schedule("publish_post", POST, target="z", at=PAST)
    to_x, to_y = [await app.schedule("publish_post", POST, target=target, at=PAST) for target in ("x", "y")]
    await later.tick()
    to_x, to_y = await later.get(to_x.id), await later.get(to_y.id)
    await app.close()
    await later.close()
    assert to_x.status == "published"
    assert (to_y.status, to_y.reason) == ("failed", "rejected")
    assert len(receiver.requests) == 1


def test_a_process_without_the_setting_schedules_to_any_target() -> None:
    assert publish_post(Settings()).dump(POST, target="anything")


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"text": "Hi"}, "payload.thing_id"),
        ({"thing_id": "p"}, "payload"),
        ({"thing_id": "p", "text": "Hi", "media": ["file:///etc/passwd"]}, "payload.media.0"),
        ({"thing_id": "p", "text": "Hi", "media": ["https://cdn.example/a.jpg"] * 51}, "payload.media"),
        ({"thing_id": "p", "text": "Hi", "link": "https://shop.example"}, "payload.link"),
    ],
)
def test_a_post_that_makes_no_sense_is_refused_by_its_field(payload: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        publish_post(Settings()).dump(payload)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("given", "setting", "said"),
    [
        ({"networks": {}}, "POSTDATE_NETWORKS", "such as"),
        ({"webhook_secret": None}, "POSTDATE_WEBHOOK_SECRET", "always signed"),
        ({"webhook_secret": "whsec_short"}, "POSTDATE_WEBHOOK_SECRET", "24 to 64 bytes"),
        ({"networks": {"": "https://a.example"}}, "POSTDATE_NETWORKS", "'' is no target"),
        ({"networks": {"x": "a.example/t0ken"}}, "POSTDATE_NETWORKS", "'x' must begin with https://"),
        ({"networks": {"x": "http://a.example/t0ken"}}, "POSTDATE_NETWORKS", "POSTDATE_WEBHOOK_ALLOW_HTTP"),
        ({"networks": {"x": "https://a.example/t0ken" + "x" * 2048}}, "POSTDATE_NETWORKS", "2048 characters"),
    ],
)
async def test_what_is_missing_or_garbled_is_told_at_start_and_nothing_is_sent(
    http: httpx2.AsyncClient, given: dict[str, Any], setting: str, said: str
) -> None:
    base: dict[str, Any] = {"networks": {"x": "https://a.example/t0ken"}, "webhook_secret": SECRET}
    action_type = publish_post(Settings(**(base | given)))
    assert action_type.configured is not None
    with pytest.raises(NotConfigured, match=f"publish_post needs {setting}: .*{said}") as missing:
        action_type.configured()
    assert missing.value.setting == setting
    assert "t0ken" not in str(missing.value)
    with pytest.raises(NotSent, match=setting):
        await action_type.handler(context(http, target="x"), POST)


def test_networks_are_read_from_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTDATE_NETWORKS", '{"x": "https://a.example/t0ken"}')
    assert Settings().networks == {"x": "https://a.example/t0ken"}
    assert "t0ken" not in repr(Settings())


@pytest.mark.parametrize("text", ["x=https://a.example", '["x"]', '{"x": 1}', "[" * 100_000])
def test_networks_that_are_no_such_json_are_told_by_the_setting(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("POSTDATE_NETWORKS", text)
    with pytest.raises(ValueError, match="networks"):
        Settings()
