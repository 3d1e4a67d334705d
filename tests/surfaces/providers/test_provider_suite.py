"""Does the suite find out a provider that says what did not happen?"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from postdate.domain.outcome import Deferred, NotSent, Published, Rejected, Skipped, Unconfirmed
from postdate.domain.settle import Policy
from postdate.errors import Invalid
from postdate.providers.api import Reply, ask, look
from postdate.providers.mail import SendEmail
from postdate.providers.mailbox import Mailbox
from postdate.providers.smtp import Smtp
from postdate.providers.smtp_url import SmtpServer
from postdate.registry import ActionType
from postdate.testing import http_situations, smtp_situations
from postdate.testing.providers import HttpProviderConformance, HttpSituation, SmtpProviderConformance, SmtpSituation
from postdate.testing.providers import answer as answered

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from postdate.context import Context
    from postdate.domain.action import Action
    from postdate.testing.providers import Letter, Request

OUTCOMES = [Published, NotSent, Rejected, Unconfirmed, Skipped, Deferred]


class Honest(HttpProviderConformance):
    """Says what happened. Each of its subclasses has one fault."""

    accepted = answered("200 OK", body={"id": "p-1"})
    found = answered("200 OK", body={"known": "p-1"})
    provider_id = "p-1"

    def action_type(self, base_url: str) -> ActionType:
        async def handler(ctx: Context, payload: dict[str, Any]) -> Published:
            return await self.send(ctx, f"{base_url}/posts")

        async def lookup(ctx: Context, payload: dict[str, Any]) -> Published:
            return await self.look(ctx, f"{base_url}/posts")

        return ActionType(name="send", handler=handler, lookup=lookup, policy=Policy(idempotent=True))

    def check_request(self, request: Request, action: Action) -> None:
        assert request.json() == {"text": "Hi"}

    async def send(self, ctx: Context, url: str) -> Published:
        reply = await self.ask(ctx, url)
        if reply.status in {429, 503}:
            raise NotSent(reply, retry_after=reply.wait)
        if not reply.is_success:
            raise (Rejected if reply.status < 500 else Unconfirmed)(reply)
        if "id" not in reply.json():
            raise Unconfirmed(reply)
        return Published(provider_id=reply.json()["id"])

    async def ask(self, ctx: Context, url: str) -> Reply:
        return await ask(ctx, "POST", url, json={"text": "Hi"}, headers={"idempotency-key": ctx.idempotency_key})

    async def look(self, ctx: Context, url: str) -> Published:
        known = (await look(ctx, url)).get("known")
        if known is None:
            raise Unconfirmed("not known")
        return Published(provider_id=known)


class Optimist(Honest):
    async def send(self, ctx: Context, url: str) -> Published:
        try:
            return await super().send(ctx, url)
        except (NotSent, Rejected, Unconfirmed):
            return Published(provider_id="p-1")


class Eager(Honest):
    async def send(self, ctx: Context, url: str) -> Published:
        try:
            return await super().send(ctx, url)
        except Unconfirmed as error:
            raise NotSent(error) from error


class Impatient(Honest):
    async def send(self, ctx: Context, url: str) -> Published:
        try:
            return await super().send(ctx, url)
        except Unconfirmed:
            return await super().send(ctx, url)


class Doubtful(Honest):
    async def send(self, ctx: Context, url: str) -> Published:
        try:
            return await super().send(ctx, url)
        except NotSent as error:
            raise Unconfirmed(error) from error


class Deaf(Honest):
    async def ask(self, ctx: Context, url: str) -> Reply:
        reply = await super().ask(ctx, url)
        return Reply(status=reply.status, body=reply.body)


class Greedy(Honest):
    async def ask(self, ctx: Context, url: str) -> Reply:
        answer = await ctx.http.post(url, json={"text": "Hi"})
        return Reply(status=answer.status_code, body=answer.content)


class Follower(Honest):
    async def ask(self, ctx: Context, url: str) -> Reply:
        answer = await ctx.http.post(url, json={"text": "Hi"}, follow_redirects=True)
        return Reply(status=answer.status_code, body=answer.content)


class Keyless(Honest):
    async def ask(self, ctx: Context, url: str) -> Reply:
        return await ask(ctx, "POST", url, json={"text": "Hi"})


class Forgetful(Honest):
    async def send(self, ctx: Context, url: str) -> Published:
        await super().send(ctx, url)
        return Published()


class Sulky(Honest):
    offended = False

    async def send(self, ctx: Context, url: str) -> Published:
        if self.offended:
            raise NotSent("I would rather not")
        try:
            return await super().send(ctx, url)
        except Unconfirmed:
            self.offended = True
            raise


class Clinging(Honest):
    """Keeps a connection, and never looks whether it is still there."""

    client: httpx2.AsyncClient | None = None

    async def ask(self, ctx: Context, url: str) -> Reply:
        if self.client is not None:
            raise Unconfirmed("the connection is gone")
        self.client = ctx.http
        return await super().ask(ctx, url)


class Rash(Honest):
    """Takes an unreachable provider for one that has nothing."""

    async def look(self, ctx: Context, url: str) -> Published:
        try:
            return await super().look(ctx, url)
        except Unconfirmed as error:
            raise NotSent(error) from error


class Credulous(Honest):
    """Takes any answer for a yes."""

    async def look(self, ctx: Context, url: str) -> Published:
        await ask(ctx, "GET", url)
        return Published(provider_id="p-1")


class Blind(Honest):
    async def look(self, ctx: Context, url: str) -> Published:
        raise Unconfirmed("who knows")


def fails(case: Callable[[], object]) -> bool:
    try:
        case()
    except AssertionError:
        return True
    except pytest.skip.Exception:
        raise AssertionError("the case did not run") from None
    return False


CASES = [name for name, _ in inspect.getmembers(Honest, inspect.isfunction) if name.startswith("test_")]


@pytest.mark.parametrize(
    ("liar", "found_out_when"),
    [
        (Optimist, set(HttpSituation) - {HttpSituation.GARBAGE, HttpSituation.HALF_BODY, HttpSituation.ENDLESS}),
        (Eager, {HttpSituation.CUT, HttpSituation.NOT_HTTP, HttpSituation.SERVER_ERROR, HttpSituation.HALF_BODY}),
        (Impatient, {HttpSituation.CUT, HttpSituation.BROKEN_OFF, HttpSituation.HALF_HEAD, HttpSituation.GARBAGE}),
        (Doubtful, {HttpSituation.REFUSED, HttpSituation.UNKNOWN_HOST, HttpSituation.UNAVAILABLE}),
        (Deaf, {HttpSituation.BUSY_FOR_SECONDS, HttpSituation.BUSY_UNTIL}),
        (Greedy, {HttpSituation.ENDLESS}),
        (Follower, {HttpSituation.ELSEWHERE}),
    ],
)
def test_a_liar_is_found_out(liar: type[Honest], found_out_when: set[HttpSituation]) -> None:
    for situation in found_out_when - {HttpSituation.SILENT, HttpSituation.NEVER_CONNECTED}:
        assert fails(partial(liar().test_the_outcome_when, situation)), situation


@pytest.mark.parametrize(
    ("liar", "case"),
    [
        (Keyless, "test_every_attempt_carries_the_same_key_where_the_action_type_is_idempotent"),
        (Forgetful, "test_what_is_sent_and_what_is_kept_of_the_answer"),
        (Sulky, "test_a_broken_connection_does_not_keep_the_next_action_back"),
        (Clinging, "test_a_connection_that_the_server_closed_meanwhile_is_replaced"),
        (Rash, "test_a_lookup_settles_nothing_without_a_clear_answer"),
        (Credulous, "test_a_lookup_settles_nothing_without_a_clear_answer"),
        (Blind, "test_a_lookup_finds_what_the_provider_has"),
    ],
)
def test_a_fault_is_found_by_its_case(liar: type[Honest], case: str) -> None:
    assert case in CASES
    assert fails(getattr(liar(), case))
    assert not fails(getattr(Honest(), case))


@pytest.mark.parametrize("situation", list(HttpSituation), ids=str)
def test_an_honest_provider_passes_when(situation: HttpSituation) -> None:
    Honest().test_the_outcome_when(situation)


class HonestMail(SmtpProviderConformance):
    payload = SendEmail(to=["ana@shop.test"], subject="Hello", text="Hi")

    def action_type(self, host: str, port: int) -> ActionType:
        server = SmtpServer.parse(f"smtp://{host}:{port}")
        smtp = Smtp(
            server=server,
            sender=Mailbox.parse("hello@shop.test"),
            envelope_seconds=self.patience,
            answer_seconds=self.patience,
        )

        async def handler(ctx: Context, payload: SendEmail) -> Published:
            return await self.send(smtp, ctx, payload)

        return ActionType(name="mail", handler=handler, payload=TypeAdapter(SendEmail), close=smtp.close)

    def check_letter(self, letter: Letter, action: Action) -> None:
        assert letter.recipients == ("ana@shop.test",)

    async def send(self, smtp: Smtp, ctx: Context, payload: SendEmail) -> Published:
        return await smtp.send(ctx, payload)


class EagerMail(HonestMail):
    async def send(self, smtp: Smtp, ctx: Context, payload: SendEmail) -> Published:
        try:
            return await smtp.send(ctx, payload)
        except Unconfirmed as error:
            raise NotSent(error) from error


class ImpatientMail(HonestMail):
    async def send(self, smtp: Smtp, ctx: Context, payload: SendEmail) -> Published:
        try:
            return await smtp.send(ctx, payload)
        except Unconfirmed:
            return await smtp.send(ctx, payload)


class OptimisticMail(HonestMail):
    async def send(self, smtp: Smtp, ctx: Context, payload: SendEmail) -> Published:
        try:
            return await smtp.send(ctx, payload)
        except (NotSent, Rejected, Unconfirmed):
            return Published()


@pytest.mark.parametrize("liar", [EagerMail, ImpatientMail, OptimisticMail])
@pytest.mark.parametrize(
    "situation", [SmtpSituation.CUT_AFTER_MESSAGE, SmtpSituation.HALF_REPLY, SmtpSituation.GARBAGE], ids=str
)
def test_a_liar_by_mail_is_found_out_when(liar: type[HonestMail], situation: SmtpSituation) -> None:
    assert fails(lambda: liar().test_the_outcome_when(situation))


@pytest.mark.parametrize(
    ("situations", "rules"), [(HttpSituation, http_situations.RULES), (SmtpSituation, smtp_situations.RULES)]
)
def test_every_situation_has_a_rule_and_expects_what_it_allows(situations: Any, rules: dict[Any, Any]) -> None:
    assert list(rules) == list(situations)
    assert all(rule.expected in rule.allowed for rule in rules.values())


MAY_HAVE_BEEN_TAKEN = {
    *("SERVER_ERROR", "SILENT", "CUT", "BROKEN_OFF", "HALF_HEAD", "HALF_BODY", "ENDLESS", "NOT_HTTP", "GARBAGE"),
    *("SILENT_AFTER_MESSAGE", "CUT_AFTER_MESSAGE", "HALF_REPLY"),
}
SAID_YES = {HttpSituation.HALF_BODY, HttpSituation.ENDLESS, HttpSituation.GARBAGE}


@pytest.mark.parametrize("declared", OUTCOMES)
def test_what_would_break_a_promise_cannot_be_declared(declared: Any) -> None:
    situations = [*http_situations.RULES.items(), *smtp_situations.RULES.items()]
    for situation, rule in situations:
        parent = Honest if isinstance(situation, HttpSituation) else HonestMail
        breaks = (declared is NotSent and situation.name in MAY_HAVE_BEEN_TAKEN) or (
            declared is Published and situation not in SAID_YES
        )
        if declared in rule.allowed and declared is not rule.expected:
            assert not breaks, situation
            type("Declared", (parent,), {"differs": {situation: declared}})
        else:
            said = "need not say" if declared is rule.expected else f"only be .* {situation}"
            with pytest.raises(Invalid, match=said):
                type("Declared", (parent,), {"differs": {situation: declared}})
