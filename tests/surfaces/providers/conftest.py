"""What do the providers talk to? Real servers on the loopback interface, in the loop of the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trustme

from postdate.providers.http import http_client
from postdate.settings import Settings
from postdate.testing.smtp_server import ScriptedSmtp
from tests.surfaces.providers.http_receiver import HttpReceiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with http_client(Settings(egress_allow="127.0.0.1")) as client:
        yield client


@pytest.fixture
async def receiver() -> AsyncIterator[HttpReceiver]:
    async with HttpReceiver() as started:
        yield started


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedSmtp]:
    async with ScriptedSmtp() as started:
        yield started


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Signs certificates that nobody but a test trusts."""
    return trustme.CA()
