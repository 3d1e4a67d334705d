"""What does a fault happen to?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate import Postdate
from postdate.clock import ManualClock
from postdate.testing.chaos.worker import SteppedClock
from tests.conftest import IN_CI
from tests.faults.pooler import PROGRAM, PgBouncer
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def app(database_url: str, clock: ManualClock) -> AsyncIterator[Postdate]:
    app = Postdate(database_url, clock=clock)
    yield app
    await app.close()


@pytest.fixture
def stepped() -> SteppedClock:
    """Return the clock of `live`, which counts on by itself and can be stepped."""
    return SteppedClock()


@pytest.fixture
async def live(database_url: str, stepped: SteppedClock) -> AsyncIterator[Postdate]:
    app = Postdate(database_url, clock=stepped)
    yield app
    await app.close()


@pytest.fixture
def pooled_url(postgres_url: str) -> Iterator[str]:
    """Give the URL of a database behind PgBouncer in transaction mode, with two connections to the server."""
    if PROGRAM is None:
        message = "NOT TESTED BEHIND A POOLER: install Debian's package pgbouncer"
        pytest.fail(message) if IN_CI else pytest.skip(message)
    with PgBouncer(postgres_url) as pooler:
        yield pooler.url
