"""What does Twilio's answer become, and what does it show afterwards?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from postdate.domain.outcome import NotSent, Rejected, Unconfirmed
from postdate.errors import InvalidPayload, NotConfigured
from postdate.providers.builtin import builtin_action_types
from postdate.providers.twilio import SendSms, Twilio
from postdate.settings import Settings
from postdate.testing.http_server import Answer, ScriptedHttp, answer
from tests.surfaces.providers.contexts import context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

ACCOUNT = "AC" + "0123456789abcdef" * 2
SERVICE = "MG" + "0123456789abcdef" * 2
SECRET = "s3cr3t"
HELLO = SendSms(to="+351912345678", text="Hi Ana")
GOOD = {"twilio_account_sid": ACCOUNT, "twilio_auth_token": SECRET, "twilio_from": "+15005550006"}


@pytest.fixture
async def api() -> AsyncIterator[ScriptedHttp]:
    async with ScriptedHttp() as started:
        yield started


@pytest.fixture
def twilio(api: ScriptedHttp) -> Twilio:
    return made(twilio_url=api.base_url)


def made(**changes: Any) -> Twilio:
    return Twilio.of(Settings(**{**GOOD, **changes}))


def refusal(status: str, code: int, message: str = "Because.") -> Answer:
    return answer(status, body={"code": code, "message": message, "more_info": "https://..."})


@pytest.mark.parametrize(
    ("refused", "expected", "text"),
    [
        (refusal("400 Bad", 21211, "Invalid 'To'"), Rejected, r"^Invalid 'To' \(code 21211\)$"),
        (refusal("400 Bad", 21610, "Unsubscribed"), Rejected, "code 21610"),
        (refusal("403 Forbidden", 21408), Rejected, "code 21408"),
        (answer("400 Bad", body="<html>"), Rejected, "answered 400: <html>"),
        (answer("400 Bad", body={"code": [21611], "message": "No"}), Rejected, "answered 400: "),
        (answer("400 Bad", body={"code": {}, "message": ["No"]}), Rejected, "answered 400: "),
        (refusal("401 No", 20003, "Authenticate"), NotSent, r"the account is at fault: Authenticate \(code 20003\)"),
        (refusal("404 No", 20404), NotSent, "the account is at fault"),
        (refusal("429 Too many", 20429), NotSent, "code 20429"),
        (refusal("429 Too many", 63038), NotSent, "code 63038"),
        (refusal("400 Bad", 21611), NotSent, "code 21611"),
        (refusal("400 Bad", 14107), NotSent, "code 14107"),
        (answer("408 Too slow"), NotSent, "answered 408"),
        (refusal("500 Oops", 20500), Unconfirmed, "code 20500"),
        (refusal("503 Oops", 20503), Unconfirmed, "code 20503"),
        (refusal("500 Oops", 20429), Unconfirmed, "code 20429"),
    ],
)
async def test_a_refusal_becomes_its_outcome(
    http: httpx2.AsyncClient, api: ScriptedHttp, twilio: Twilio, refused: Answer, expected: type[Exception], text: str
) -> None:
    api.answer = refused
    with pytest.raises(expected, match=text):
        await twilio.send(context(http), HELLO)


@pytest.mark.parametrize("body", [{"status": "queued"}, {"sid": 7}, "null"])
async def test_a_yes_that_does_not_say_what_was_taken_is_doubtful(
    http: httpx2.AsyncClient, api: ScriptedHttp, twilio: Twilio, body: Any
) -> None:
    api.answer = answer("201 Created", body=body)
    with pytest.raises(Unconfirmed, match="unclear: answered 201"):
        await twilio.send(context(http), HELLO)


@pytest.mark.parametrize(
    ("changes", "sent"),
    [
        ({}, {"From": ["+15005550006"]}),
        ({"twilio_from": "Shop"}, {"From": ["Shop"]}),
        ({"twilio_from": "12345"}, {"From": ["12345"]}),
        ({"twilio_from": None, "twilio_messaging_service_sid": SERVICE}, {"MessagingServiceSid": [SERVICE]}),
        (
            {"twilio_messaging_service_sid": SERVICE},
            {"From": ["+15005550006"], "MessagingServiceSid": [SERVICE]},
        ),
    ],
)
async def test_the_sender_is_a_number_or_a_name_or_a_service(
    http: httpx2.AsyncClient, api: ScriptedHttp, changes: dict[str, Any], sent: dict[str, list[str]]
) -> None:
    api.answer = answer("201 Created", body={"sid": "SM1"})
    assert (await made(twilio_url=api.base_url, **changes).send(context(http), HELLO)).provider_id == "SM1"
    fields = parse_qs(api.requests[0].body.decode())
    assert {name: value for name, value in fields.items() if name not in {"To", "Body"}} == sent


def listed(**changes: Any) -> dict[str, Any]:
    message = {
        "sid": "SM1",
        "status": "delivered",
        "direction": "outbound-api",
        "to": HELLO.to,
        "body": HELLO.text,
        "date_created": "Sun, 14 Mar 2027 09:00:01 +0000",
    }
    return {**message, **changes}


async def test_what_may_be_the_sms_is_named_for_a_person_and_settles_nothing(
    http: httpx2.AsyncClient, api: ScriptedHttp, twilio: Twilio
) -> None:
    trial = listed(sid="SM2", status="failed", body=f"Sent from your Twilio trial account - {HELLO.text}")
    others = [
        listed(sid="SM3", body="Something else"),
        listed(sid="SM4", date_created="Sun, 14 Mar 2027 08:00:00 +0000"),
        listed(sid="SM5", direction="inbound"),
        listed(sid="SM6", date_created="soon"),
        listed(sid="SM7", date_created=None),
        listed(sid="SM8", body=None),
        "SM9",
    ]
    api.answer = answer("200 OK", body={"messages": [listed(), *others, trial]})
    with pytest.raises(Unconfirmed) as unsure:
        await twilio.lookup(context(http), HELLO)
    assert unsure.value.error == (
        "Twilio shows 2 with this text to this number, of which one may be it: SM1 (delivered), SM2 (failed)"
    )
    (request,) = api.requests
    assert request.method == "GET"
    assert parse_qs(urlsplit(request.target).query) == {"To": [HELLO.to], "PageSize": ["50"]}


@pytest.mark.parametrize("body", [{"messages": []}, {"messages": None}, {"other": 1}])
async def test_a_list_without_it_settles_nothing_either(
    http: httpx2.AsyncClient, api: ScriptedHttp, twilio: Twilio, body: dict[str, Any]
) -> None:
    api.answer = answer("200 OK", body=body)
    with pytest.raises(Unconfirmed, match="shows no message"):
        await twilio.lookup(context(http), HELLO)


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"twilio_account_sid": None}, "POSTDATE_TWILIO_ACCOUNT_SID"),
        ({"twilio_account_sid": "AC/../.."}, "POSTDATE_TWILIO_ACCOUNT_SID"),
        ({"twilio_auth_token": None}, "POSTDATE_TWILIO_AUTH_TOKEN"),
        ({"twilio_auth_token": f"{SECRET} "}, "POSTDATE_TWILIO_AUTH_TOKEN"),
        ({"twilio_from": None}, "POSTDATE_TWILIO_FROM"),
        ({"twilio_from": "a name that is too long"}, "POSTDATE_TWILIO_FROM"),
        ({"twilio_from": "+0123"}, "POSTDATE_TWILIO_FROM"),
        ({"twilio_messaging_service_sid": ACCOUNT}, "POSTDATE_TWILIO_MESSAGING_SERVICE_SID"),
        ({"twilio_url": "ftp://api.test"}, "POSTDATE_TWILIO_URL"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named_and_never_shows_the_token(
    changes: dict[str, Any], setting: str
) -> None:
    with pytest.raises(NotConfigured) as missing:
        made(**changes)
    assert missing.value.setting == setting
    assert SECRET not in str(missing.value)
    send_sms = {each.name: each for each in builtin_action_types(Settings(**{**GOOD, **changes}))}["send_sms"]
    assert send_sms.configured is not None
    with pytest.raises(NotConfigured, match=f"send_sms needs {setting}: "):
        send_sms.configured()


def test_nothing_shows_the_token() -> None:
    assert SECRET not in repr(made())


SEND_SMS = {each.name: each for each in builtin_action_types(Settings())}["send_sms"]


@pytest.mark.parametrize("to", ["+351912345678", " +351 912 345 678", "+1 (500) 555-0006"])
def test_a_number_is_kept_without_what_people_write_between_its_digits(to: str) -> None:
    kept = SEND_SMS.dump({"to": to, "text": "Hi"})["to"]
    assert kept in {"+351912345678", "+15005550006"}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"to": "912345678"}, "payload.to"),
        ({"to": "00351912345678"}, "payload.to"),
        ({"to": "+0351912345678"}, "payload.to"),
        ({"to": "+351٩١٢٣٤٥٦٧٨"}, "payload.to"),
        ({"to": "+" + "1" * 16}, "payload.to"),
        ({"to": "+1500" + " " * 500 + "5550006"}, "payload.to"),
        ({"to": "+15005550006\n"}, "payload.to"),
        ({"to": "whatsapp:+15005550006"}, "payload.to"),
        ({"text": ""}, "payload.text"),
        ({"text": "x" * 1601}, "payload.text"),
        ({"from": "me"}, "payload.from"),
    ],
)
def test_a_wrong_sms_is_refused_when_it_is_scheduled(wrong: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        SEND_SMS.dump({"to": "+15005550006", "text": "Hi", **wrong})
    assert refused.value.field == field
