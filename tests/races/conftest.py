"""What does a race need?"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.races.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def restless_threads() -> Iterator[None]:
    """Let threads take turns within a statement, not every 5 ms: else the first one here would win every race."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@contextmanager
def opened(url: str) -> Iterator[Stage]:
    stage = Stage.on(url)
    yield stage
    stage.close()


@pytest.fixture
def stage(database_url: str) -> Iterator[Stage]:
    with opened(database_url) as stage:
        yield stage


@pytest.fixture
def postgres_stage(postgres_url: str) -> Iterator[Stage]:
    with opened(postgres_url) as stage:
        yield stage


@pytest.fixture
def sqlite_stage(sqlite_url: str) -> Iterator[Stage]:
    with opened(sqlite_url) as stage:
        yield stage
