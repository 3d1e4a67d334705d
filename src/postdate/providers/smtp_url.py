"""Where is mail handed over, and as whom?"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from postdate.providers.host import host_name

MAX_URL = 2048


class Security(StrEnum):
    """How the connection is kept private: the schemes of POSTDATE_SMTP_URL."""

    NONE = "smtp"
    TLS = "smtps"
    STARTTLS = "smtp+starttls"


_PORTS = {Security.NONE: 25, Security.TLS: 465, Security.STARTTLS: 587}


@dataclass(frozen=True, kw_only=True)
class SmtpServer:
    """Where mail is handed over, and as whom."""

    host: str
    port: int
    security: Security
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> SmtpServer:
        """Read `smtp://`, `smtps://` or `smtp+starttls://`, then `user:password@host:port`, percent-encoded.

        The ports are 25, 465 and 587 where none is given. Raises ValueError with the rule, never with the URL.
        """
        if len(url) > MAX_URL:
            raise ValueError(f"must have at most {MAX_URL} characters")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            # urllib's own text may quote the password.
            raise ValueError("must be a URL with a port from 1 to 65535; percent-encode the password") from None
        if parts.scheme not in set(Security):
            raise ValueError(f"must begin with {', '.join(f'{each}://' for each in Security)}")
        if parts.path not in {"", "/"} or parts.query or parts.fragment:
            raise ValueError("must end after host and port; percent-encode / ? # in the password")
        if port == 0 or not parts.hostname:
            raise ValueError("must name a host, and a port from 1 to 65535")
        if bool(parts.username) != bool(parts.password):
            raise ValueError("must hold both user and password, or neither")
        security = Security(parts.scheme)
        return cls(
            host=parts.hostname if ":" in parts.hostname else host_name(parts.hostname),
            port=_PORTS[security] if port is None else port,
            security=security,
            username=unquote(parts.username, errors="strict") if parts.username else None,
            password=unquote(parts.password, errors="strict") if parts.password else None,
        )
