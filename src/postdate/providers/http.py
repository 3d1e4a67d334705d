"""Which HTTP client do handlers share?"""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version

import httpx2

TIMEOUT = httpx2.Timeout(30, connect=10, pool=10)
"""Seconds: 30 to write and to read, 10 to connect and to wait for a free connection."""
LIMITS = httpx2.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=20)


def http_client() -> httpx2.AsyncClient:
    """Return the client that becomes `Context.http`; whoever asks for it closes it.

    It follows no redirects, takes no proxy or password from the environment and keeps no cookies: what one
    receiver answered never travels to another.
    """
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=TIMEOUT,
        limits=LIMITS,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        headers={"user-agent": f"postdate/{version('postdate')}"},
    )
