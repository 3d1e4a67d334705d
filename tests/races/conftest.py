"""What does a race need?"""

from __future__ import annotations

import sys
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


@pytest.fixture
def stage(database_url: str) -> Iterator[Stage]:
    opened = Stage.on(database_url)
    yield opened
    opened.close()
