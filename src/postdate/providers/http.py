"""Which HTTP client do handlers share?"""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import TYPE_CHECKING

import httpx2

from postdate.providers.egress import Egress
from postdate.providers.guard import GuardedTransport, Resolve
from postdate.providers.resolver import system_resolve

if TYPE_CHECKING:
    from postdate.settings import Settings

TIMEOUT = httpx2.Timeout(30, connect=10, pool=10)
"""Seconds: 30 to write and to read, 10 to resolve and connect, and to wait for a free connection."""
LIMITS = httpx2.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=20)


def http_client(settings: Settings, *, resolve: Resolve = system_resolve) -> httpx2.AsyncClient:
    """Return the client that becomes `Context.http`; whoever asks for it closes it.

    It connects to public addresses and to those of POSTDATE_EGRESS_ALLOW, follows no redirects, takes no proxy or
    password from the environment and keeps no cookies: what one receiver answered never travels to another.

    Raises `NotConfigured` where the setting cannot be understood. A request to another address raises the outcome
    `AddressRefused`, which a handler may let pass.
    """
    return httpx2.AsyncClient(
        transport=GuardedTransport(Egress.of(settings), resolve, LIMITS),
        trust_env=False,
        follow_redirects=False,
        timeout=TIMEOUT,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        headers={"user-agent": f"postdate/{version('postdate')}"},
    )
