"""Which provider sends the e-mails?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from postdate.errors import NotConfigured
from postdate.providers.postmark import Postmark
from postdate.providers.smtp import Smtp

if TYPE_CHECKING:
    from postdate.context import Context
    from postdate.domain.outcome import Published
    from postdate.providers.mail import SendEmail
    from postdate.providers.smtp_connections import Connections
    from postdate.settings import Settings

SETTING = "POSTDATE_EMAIL_PROVIDER"


class Mailer(Protocol):
    """A provider that sends e-mails."""

    async def send(self, ctx: Context, payload: SendEmail) -> Published:
        """Send one e-mail and return the provider's id. Raises an outcome."""


def mailer(settings: Settings, *, needed_by: str, connections: Connections | None = None) -> Smtp | Postmark:
    """Return the provider that POSTDATE_EMAIL_PROVIDER names, else the one that is set up.

    Over SMTP it shares `connections` with others to the same server, where they are given.

    Raises `NotConfigured` where both are and none is named, and where a setting is missing or cannot be understood.
    """
    match settings.email_provider:
        case "smtp":
            return Smtp.of(settings, needed_by=needed_by, connections=connections)
        case "postmark":
            return Postmark.of(settings, needed_by=needed_by)
        case None:
            return _only(settings, needed_by=needed_by, connections=connections)


def mail_is_set_up(settings: Settings) -> bool:
    """Whether anything is said of how e-mails are sent, be it right or wrong."""
    said = (settings.email_provider, settings.smtp_url, settings.postmark_token)
    return any(each is not None for each in said)


def _only(settings: Settings, *, needed_by: str, connections: Connections | None) -> Smtp | Postmark:
    if settings.postmark_token is None:
        return Smtp.of(settings, needed_by=needed_by, connections=connections)
    if settings.smtp_url is None:
        return Postmark.of(settings, needed_by=needed_by)
    hint = "smtp or postmark, since POSTDATE_SMTP_URL and POSTDATE_POSTMARK_TOKEN are both set"
    raise NotConfigured(SETTING, needed_by=needed_by, hint=hint)
