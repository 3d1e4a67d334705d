"""Whose certificates are trusted?

Reading some hundred of them takes tens of milliseconds, so each set is read once for the process and shared: whoever
needs another one makes a context of their own rather than change these.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx2


@cache
def web_trust() -> ssl.SSLContext:
    """Return what requests over HTTP trust: the public authorities, whatever the environment says."""
    return httpx2.create_ssl_context(trust_env=False)


@cache
def mail_trust() -> ssl.SSLContext:
    """Return what connections to the mail server trust: the system's authorities, and those of SSL_CERT_FILE."""
    return ssl.create_default_context()
