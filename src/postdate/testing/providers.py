"""Does a provider say what really happened?

Subclass one of the two classes in a test module, say how your action type is bound to a server, and pytest runs it
against a real, scripted one:

    class TestChirp(HttpProviderConformance):
        payload = {"text": "Hello"}
        accepted = answer("201 Created", body={"id": "42"})
        provider_id = "42"

        def action_type(self, base_url: str) -> ActionType:
            return chirp(base_url, token="t0p")

        def check_request(self, request: Request, action: Action) -> None:
            assert request.json() == {"text": "Hello"}

Each case ends in an outcome. `differs` declares where yours is another than the expected one. What would break a
promise cannot be declared: nothing is `NotSent` once it may have been taken, nor `Published` without an answer.
"""

from __future__ import annotations

from postdate.testing.http_conformance import HttpProviderConformance
from postdate.testing.http_server import Answer, Request, ScriptedHttp, Then, answer
from postdate.testing.http_situations import RETRY_AFTER_DATE, RETRY_AFTER_SECONDS, HttpSituation
from postdate.testing.smtp_conformance import SmtpProviderConformance
from postdate.testing.smtp_server import Ending, Letter, ScriptedSmtp
from postdate.testing.smtp_situations import SmtpSituation

__all__ = [
    "RETRY_AFTER_DATE",
    "RETRY_AFTER_SECONDS",
    "Answer",
    "Ending",
    "HttpProviderConformance",
    "HttpSituation",
    "Letter",
    "Request",
    "ScriptedHttp",
    "ScriptedSmtp",
    "SmtpProviderConformance",
    "SmtpSituation",
    "Then",
    "answer",
]
