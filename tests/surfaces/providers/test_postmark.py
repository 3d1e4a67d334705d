"""What does Postmark's answer become, and what can it be asked afterwards?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from structlog.testing import capture_logs

from postdate.domain.outcome import NotSent, Published, Rejected, Unconfirmed
from postdate.errors import InvalidPayload, NotConfigured
from postdate.providers.builtin import builtin_action_types
from postdate.providers.mail import SendEmail
from postdate.providers.mailbox import Mailbox
from postdate.providers.postmark import Postmark
from postdate.settings import Settings
from postdate.testing.http_server import Answer, ScriptedHttp, answer
from tests.surfaces.providers.contexts import ACTION_ID, context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

HELLO = SendEmail(to=["ana@shop.test"], subject="Hello", text="Hi Ana")
TOKEN = "s3cr3t-t0ken"


@pytest.fixture
async def api() -> AsyncIterator[ScriptedHttp]:
    async with ScriptedHttp() as started:
        yield started


@pytest.fixture
def postmark(api: ScriptedHttp) -> Postmark:
    return Postmark(token=TOKEN, sender=Mailbox.parse("hello@shop.test"), stream="broadcasts", url=api.base_url)


def refusal(status: str, code: int, message: str = "Because.") -> Answer:
    return answer(status, body={"ErrorCode": code, "Message": message})


@pytest.mark.parametrize(
    ("refused", "expected", "text"),
    [
        (refusal("422 No", 300, "Invalid 'To'."), Rejected, r"^Invalid 'To'\. \(ErrorCode 300\)$"),
        (refusal("422 No", 406, "Inactive recipient."), Rejected, r"Inactive recipient\. \(ErrorCode 406\)"),
        (refusal("422 No", 1235), Rejected, "ErrorCode 1235"),
        (refusal("401 No", 10), NotSent, "the account is at fault: .*ErrorCode 10"),
        (answer("401 Unauthorized", body="who?"), NotSent, "the account is at fault: answered 401: who?"),
        (refusal("422 No", 400), NotSent, "the account is at fault"),
        (refusal("422 No", 401), NotSent, "the account is at fault"),
        (refusal("422 No", 405), NotSent, "the account is at fault"),
        (refusal("422 No", 412), NotSent, "the account is at fault"),
        (refusal("422 No", 413), NotSent, "the account is at fault"),
        (refusal("503 Maintenance", 100), NotSent, "ErrorCode 100"),
        (answer("408 Too slow"), NotSent, "answered 408"),
        (answer("422 No", body={"ErrorCode": [405], "Message": "No"}), Rejected, "answered 422: "),
        (answer("413 Too large"), Rejected, "answered 413"),
        (answer("403 Forbidden", body="<html>blocked</html>"), Rejected, "answered 403: <html>blocked"),
        (refusal("500 Oops", 0), Unconfirmed, "answered 500"),
        (answer("502 Bad gateway"), Unconfirmed, "answered 502"),
    ],
)
async def test_a_refusal_becomes_its_outcome(
    http: httpx2.AsyncClient,
    api: ScriptedHttp,
    postmark: Postmark,
    refused: Answer,
    expected: type[Exception],
    text: str,
) -> None:
    api.answer = refused
    with pytest.raises(expected, match=text):
        await postmark.send(context(http), HELLO)


@pytest.mark.parametrize(
    "body",
    [
        {"ErrorCode": 0, "Message": "OK"},
        {"ErrorCode": 406, "Message": "odd", "MessageID": "pm-1"},
        {"ErrorCode": 0, "Message": "OK", "MessageID": 7},
        "[]",
        "[" * 100_000,
    ],
)
async def test_a_yes_that_does_not_say_what_was_taken_is_doubtful(
    http: httpx2.AsyncClient, api: ScriptedHttp, postmark: Postmark, body: Any
) -> None:
    api.answer = answer("200 OK", body=body)
    with pytest.raises(Unconfirmed, match="unclear: answered 200"):
        await postmark.send(context(http), HELLO)


async def test_recipients_that_postmark_leaves_out_are_logged(
    http: httpx2.AsyncClient, api: ScriptedHttp, postmark: Postmark
) -> None:
    remark = "Message OK, but will not deliver to these inactive addresses: ben@shop.test."
    api.answer = answer("200 OK", body={"ErrorCode": 0, "Message": remark, "MessageID": "pm-1"})
    with capture_logs() as logs:
        assert await postmark.send(context(http), HELLO) == Published(provider_id="pm-1")
    assert [(line["log_level"], line["remark"]) for line in logs] == [("warning", remark)]


async def test_an_email_may_name_its_own_sender(
    http: httpx2.AsyncClient, api: ScriptedHttp, postmark: Postmark
) -> None:
    api.answer = answer("200 OK", body={"ErrorCode": 0, "Message": "OK", "MessageID": "pm-1"})
    await postmark.send(context(http), HELLO.model_copy(update={"sender": "Ben <ben@other.test>"}))
    sent = api.requests[0].json()
    assert sent["From"] == '"Ben" <ben@other.test>'
    assert sent["MessageStream"] == "broadcasts"
    assert not {"Cc", "Bcc", "ReplyTo", "HtmlBody", "Headers"} & set(sent), "what is not given is left out"


async def test_the_lookup_asks_for_the_actions_id_in_the_stream_and_sends_nothing(
    http: httpx2.AsyncClient, api: ScriptedHttp, postmark: Postmark
) -> None:
    api.answer = answer("200 OK", body={"Messages": [{"MessageID": "pm-1", "Metadata": {"action_id": str(ACTION_ID)}}]})
    assert await postmark.lookup(context(http), HELLO) == Published(provider_id="pm-1")
    (request,) = api.requests
    url = urlsplit(request.target)
    assert (request.method, url.path) == ("GET", "/messages/outbound")
    assert parse_qs(url.query) == {
        "count": ["50"],
        "offset": ["0"],
        "messagestream": ["broadcasts"],
        "metadata_action_id": [str(ACTION_ID)],
    }
    assert request.headers["x-postmark-server-token"] == TOKEN


@pytest.mark.parametrize(
    "messages",
    [
        [],
        None,
        {"0": {}},
        ["pm-1", None],
        [{"MessageID": "pm-1"}],
        [{"MessageID": "pm-1", "Metadata": None}],
        [{"MessageID": "pm-1", "Metadata": {"action_id": "another"}}],
        [{"MessageID": None, "Metadata": {"action_id": str(ACTION_ID)}}],
    ],
)
async def test_what_a_search_does_not_show_as_ours_stays_doubtful(
    http: httpx2.AsyncClient, api: ScriptedHttp, postmark: Postmark, messages: Any
) -> None:
    """Neither is absence proof, nor is any message proof of ours."""
    api.answer = answer("200 OK", body={"TotalCount": 1, "Messages": messages})
    with pytest.raises(Unconfirmed, match="shows no message with this action's id"):
        await postmark.lookup(context(http), HELLO)


@pytest.mark.parametrize("taken", [50, 51])
def test_more_recipients_than_postmark_takes_are_refused_when_the_email_is_scheduled(taken: int) -> None:
    settings = Settings(postmark_token=TOKEN, postmark_from="a@b.test")  # type: ignore[arg-type]
    send_email = {each.name: each for each in builtin_action_types(settings)}["send_email"]
    mail = {"to": [f"a{number}@b.test" for number in range(taken)], "subject": "x", "text": "y"}
    if taken == 50:
        assert send_email.dump(mail)
    else:
        with pytest.raises(InvalidPayload, match="at most 50 recipients in all") as refused:
            send_email.dump(mail)
        assert refused.value.field == "payload.to"


GOOD: dict[str, Any] = {"postmark_token": TOKEN, "postmark_from": "Shop <hello@shop.test>"}


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"postmark_token": None}, "POSTDATE_POSTMARK_TOKEN"),
        ({"postmark_token": ""}, "POSTDATE_POSTMARK_TOKEN"),
        ({"postmark_token": f"{TOKEN}\n"}, "POSTDATE_POSTMARK_TOKEN"),
        ({"postmark_from": None}, "POSTDATE_POSTMARK_FROM"),
        ({"postmark_from": "nobody"}, "POSTDATE_POSTMARK_FROM"),
        ({"postmark_url": "api.postmarkapp.com"}, "POSTDATE_POSTMARK_URL"),
        ({"postmark_url": "https://user:pw@api.test"}, "POSTDATE_POSTMARK_URL"),
        ({"postmark_url": "https://api.test/?a=b"}, "POSTDATE_POSTMARK_URL"),
        ({"postmark_url": "https://api.test/" + "x" * 3000}, "POSTDATE_POSTMARK_URL"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named_and_never_shows_the_token(
    changes: dict[str, Any], setting: str
) -> None:
    with pytest.raises(NotConfigured) as missing:
        Postmark.of(Settings(**{**GOOD, **changes}))
    assert missing.value.setting == setting
    assert TOKEN not in str(missing.value)


def test_an_address_may_have_a_path_and_nothing_shows_the_token() -> None:
    made = Postmark.of(Settings(**{**GOOD, "postmark_url": "https://proxy.test/postmark/"}))
    assert made.url == "https://proxy.test/postmark"
    assert TOKEN not in repr(made)
