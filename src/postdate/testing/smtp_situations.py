"""What can happen between a provider and its mail server, and what may a run of it end in then?"""

from __future__ import annotations

from contextlib import asynccontextmanager
from enum import StrEnum
from typing import TYPE_CHECKING

from postdate.domain.outcome import NotSent, Rejected, Unconfirmed
from postdate.testing.loopback import LONG_PATIENCE, SHORT_PATIENCE, UNKNOWN_HOST, refusing_port, unanswered_port
from postdate.testing.rules import ANSWERED, BEGUN, DOUBTFUL, UNREACHED, Rule
from postdate.testing.smtp_server import Ending, ScriptedSmtp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


class SmtpSituation(StrEnum):
    """What happens; each is the end of a sentence that begins with "the outcome when"."""

    REFUSED = "the connection is refused"
    UNKNOWN_HOST = "the name of the host is not found"
    NEVER_CONNECTED = "time runs out before the connection stands"
    NO_GREETING = "time runs out before the greeting"
    CUT_GREETING = "the connection is cut instead of a greeting"
    NOT_SMTP = "the greeting is not SMTP"
    TURNED_AWAY = "the greeting is 554"
    SENDER_PUT_OFF = "the sender is put off with 451"
    SENDER_REFUSED = "the sender is refused with 550"
    RECIPIENT_PUT_OFF = "the recipient is put off with 450"
    RECIPIENT_REFUSED = "the recipient is refused with 550"
    SILENT_BEFORE_DATA = "time runs out before DATA"
    CUT_BEFORE_DATA = "the connection is cut before DATA"
    DATA_PUT_OFF = "DATA is put off with 451"
    DATA_REFUSED = "DATA is refused with 554"
    SILENT_AFTER_DATA = "time runs out after DATA"
    CUT_AFTER_DATA = "the connection is cut after DATA"
    MESSAGE_PUT_OFF = "the message is put off with 452"
    MESSAGE_REFUSED = "the message is refused with 552"
    SILENT_AFTER_MESSAGE = "time runs out after the message was written"
    CUT_AFTER_MESSAGE = "the connection is cut after the message was written"
    HALF_REPLY = "the connection is cut in the middle of the reply to the message"
    ENDLESS = "the reply to the message never ends"
    GARBAGE = "the reply to the message makes no sense"


RULES: dict[SmtpSituation, Rule] = {
    SmtpSituation.REFUSED: Rule(NotSent, UNREACHED),
    SmtpSituation.UNKNOWN_HOST: Rule(NotSent, UNREACHED),
    SmtpSituation.NEVER_CONNECTED: Rule(NotSent, UNREACHED),
    SmtpSituation.NO_GREETING: Rule(NotSent, UNREACHED),
    SmtpSituation.CUT_GREETING: Rule(NotSent, UNREACHED),
    SmtpSituation.NOT_SMTP: Rule(NotSent, UNREACHED),
    SmtpSituation.TURNED_AWAY: Rule(NotSent, UNREACHED),
    SmtpSituation.SENDER_PUT_OFF: Rule(NotSent, ANSWERED),
    SmtpSituation.SENDER_REFUSED: Rule(Rejected, ANSWERED),
    SmtpSituation.RECIPIENT_PUT_OFF: Rule(NotSent, ANSWERED),
    SmtpSituation.RECIPIENT_REFUSED: Rule(Rejected, ANSWERED),
    SmtpSituation.SILENT_BEFORE_DATA: Rule(NotSent, UNREACHED),
    SmtpSituation.CUT_BEFORE_DATA: Rule(NotSent, UNREACHED),
    SmtpSituation.DATA_PUT_OFF: Rule(NotSent, ANSWERED),
    SmtpSituation.DATA_REFUSED: Rule(Rejected, ANSWERED),
    SmtpSituation.SILENT_AFTER_DATA: Rule(Unconfirmed, BEGUN),
    SmtpSituation.CUT_AFTER_DATA: Rule(Unconfirmed, BEGUN),
    SmtpSituation.MESSAGE_PUT_OFF: Rule(NotSent, ANSWERED),
    SmtpSituation.MESSAGE_REFUSED: Rule(Rejected, ANSWERED),
    SmtpSituation.SILENT_AFTER_MESSAGE: Rule(Unconfirmed, DOUBTFUL),
    SmtpSituation.CUT_AFTER_MESSAGE: Rule(Unconfirmed, DOUBTFUL),
    SmtpSituation.HALF_REPLY: Rule(Unconfirmed, DOUBTFUL),
    SmtpSituation.ENDLESS: Rule(Unconfirmed, DOUBTFUL),
    SmtpSituation.GARBAGE: Rule(Unconfirmed, DOUBTFUL),
}

SCRIPTS: dict[SmtpSituation, Mapping[str, str]] = {
    SmtpSituation.NO_GREETING: {"greeting": Ending.SILENCE},
    SmtpSituation.CUT_GREETING: {"greeting": Ending.CUT},
    SmtpSituation.NOT_SMTP: {"greeting": "SSH-2.0-OpenSSH_9.2"},
    SmtpSituation.TURNED_AWAY: {"greeting": "554 not for you"},
    SmtpSituation.SENDER_PUT_OFF: {"MAIL": "451 later"},
    SmtpSituation.SENDER_REFUSED: {"MAIL": "550 not you"},
    SmtpSituation.RECIPIENT_PUT_OFF: {"RCPT": "450 greylisted"},
    SmtpSituation.RECIPIENT_REFUSED: {"RCPT": "550 unknown"},
    SmtpSituation.SILENT_BEFORE_DATA: {"RCPT": Ending.SILENCE},
    SmtpSituation.CUT_BEFORE_DATA: {"RCPT": Ending.CUT},
    SmtpSituation.DATA_PUT_OFF: {"DATA": "451 later"},
    SmtpSituation.DATA_REFUSED: {"DATA": "554 no"},
    SmtpSituation.SILENT_AFTER_DATA: {"DATA": Ending.SILENCE},
    SmtpSituation.CUT_AFTER_DATA: {"DATA": Ending.CUT},
    SmtpSituation.MESSAGE_PUT_OFF: {"message": "452 full"},
    SmtpSituation.MESSAGE_REFUSED: {"message": "552 too big"},
    SmtpSituation.SILENT_AFTER_MESSAGE: {"message": Ending.SILENCE},
    SmtpSituation.CUT_AFTER_MESSAGE: {"message": Ending.CUT},
    SmtpSituation.HALF_REPLY: {"message": Ending.HALF},
    SmtpSituation.ENDLESS: {"message": Ending.FLOOD},
    SmtpSituation.GARBAGE: {"message": "nonsense"},
}
"""What the server says where the connection stands."""


SILENT = frozenset(
    {
        SmtpSituation.NEVER_CONNECTED,
        SmtpSituation.NO_GREETING,
        SmtpSituation.SILENT_BEFORE_DATA,
        SmtpSituation.SILENT_AFTER_DATA,
        SmtpSituation.SILENT_AFTER_MESSAGE,
    }
)
"""Where only the patience of the provider ends the wait."""


def patience(situation: SmtpSituation) -> float:
    """Return how many seconds a case waits: little where nothing but patience ends the wait."""
    return SHORT_PATIENCE if situation in SILENT else LONG_PATIENCE


@asynccontextmanager
async def staged(situation: SmtpSituation) -> AsyncIterator[ScriptedSmtp]:
    """Give a server for the situation. Where no connection is to stand, it has an address, and nobody listens there."""
    server = ScriptedSmtp(script=SCRIPTS.get(situation, {}))
    match situation:
        case SmtpSituation.UNKNOWN_HOST:
            server.host, server.port = UNKNOWN_HOST, 25
            yield server
        case SmtpSituation.NEVER_CONNECTED:
            with unanswered_port() as server.port:
                yield server
        case SmtpSituation.REFUSED:
            with refusing_port() as server.port:
                yield server
        case _:
            async with server:
                yield server
