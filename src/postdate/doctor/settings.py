"""Do the settings of the ready-made action types send anything where others could read or redirect it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.doctor.finding import ok, warn
from postdate.providers.smtp_url import Security, SmtpServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from postdate.doctor.finding import Finding
    from postdate.settings import Settings

_PAGE = "operations#settings"
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def settings_findings(settings: Settings, types: AbstractSet[str]) -> Iterator[Finding]:
    """Yield what there is to say of mail and webhooks, where these types send any."""
    if types & {"send_email", "reminder"}:
        yield from _smtp_findings(settings)
    if "send_email" in types:
        advice = (
            "where mails carry List-Unsubscribe-Post, your server must sign both List-Unsubscribe headers with DKIM "
            "(RFC 8058, section 4), else receivers show no button"
        )
        yield ok("one-click unsubscribe", "not seen from here", advice=advice)
    if types & {"call_webhook", "publish_post", "reminder"}:
        yield from _request_findings(settings)
    if types & {"call_webhook", "publish_post"} and settings.webhook_secret is None:
        advice = "receivers cannot tell them from forgeries: set POSTDATE_WEBHOOK_SECRET"
        yield warn("webhooks", "are not signed", advice=advice, page=_PAGE)


def _smtp_findings(settings: Settings) -> Iterator[Finding]:
    server = _server(settings)
    if server is None or settings.email_provider == "postmark":
        return
    found = f"{server.security}, {server.host}:{server.port}"
    if server.security is Security.NONE and server.password is not None and server.host not in _LOCAL:
        advice = "the password travels in plain text: use smtps:// or smtp+starttls:// in POSTDATE_SMTP_URL"
        yield warn("mail", found, advice=advice, page=_PAGE)
    else:
        yield ok("mail", found)


def _request_findings(settings: Settings) -> Iterator[Finding]:
    if settings.webhook_allow_http:
        advice = "plain http can be read and changed on its way: unset POSTDATE_WEBHOOK_ALLOW_HTTP outside of tests"
        yield warn("webhooks", "may go to plain http addresses", advice=advice, page=_PAGE)
    if settings.egress_allow:
        found = f"requests may leave for {settings.egress_allow} beside public addresses"
        yield ok("egress", found, advice="whoever schedules webhooks reaches these: keep the list short", page=_PAGE)


def _server(settings: Settings) -> SmtpServer | None:
    """Return where mail is handed over; None where nothing is said, or nothing that its action type understands."""
    if settings.smtp_url is None:
        return None
    try:
        return SmtpServer.parse(settings.smtp_url.get_secret_value())
    except ValueError:
        return None
