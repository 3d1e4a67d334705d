"""Is this an address that a webhook may be sent to?"""

from __future__ import annotations

from typing import Annotated

import httpx2
from pydantic import AfterValidator, StringConstraints

from postdate.providers.egress import PORTS
from postdate.providers.host import host_name

MAX_URL = 2048


def web_url(value: str) -> str:
    """Return the URL as it is, where it names a host to call over http or https.

    Raises ValueError, with the rule and without the value.
    """
    try:
        url = httpx2.URL(value)
    except httpx2.InvalidURL:
        raise ValueError("must be a URL without control characters, with a port from 1 to 65535") from None
    if url.scheme not in {"http", "https"}:
        raise ValueError("must begin with https://")
    if url.userinfo:
        raise ValueError("must not hold a user or password")
    if url.port is not None and url.port not in PORTS:
        raise ValueError("must have a port from 1 to 65535")
    host = url.raw_host.decode("ascii")
    if ":" not in host:
        host_name(host)
    return value


def https_url(value: str) -> str:
    """Return the URL where it is one of https. Raises ValueError."""
    if httpx2.URL(value).scheme != "https":
        raise ValueError("must begin with https:// (POSTDATE_WEBHOOK_ALLOW_HTTP lets http through)")
    return value


def endpoint(value: str) -> str:
    """Return the URL in the spelling under which it is known to be gone: without what is not sent to its host."""
    return str(httpx2.URL(value).copy_with(fragment=None))


WebUrl = Annotated[str, StringConstraints(max_length=MAX_URL), AfterValidator(web_url)]
HttpsUrl = Annotated[WebUrl, AfterValidator(https_url)]
