"""Which published cases of recurrence are there, and how is what they ask read?"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

FOLDER = Path(__file__).parents[2] / "cases"

Case = dict[str, Any]


def lines(name: str) -> list[Case]:
    """Return the cases of a file."""
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def each(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Return what runs a test once for each case."""
    chosen = list(cases)
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


def at(text: str) -> datetime:
    """Return the instant that text with an offset names."""
    return datetime.fromisoformat(text).astimezone(UTC)


def told(instants: Iterable[datetime]) -> list[str]:
    """Return instants as the cases write them."""
    return [instant.strftime("%Y-%m-%dT%H:%M:%SZ") for instant in instants]


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Fail where more Python functions are called: a measure of work that no busy machine changes."""
    made = 0

    def seen(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(seen)
    try:
        yield
    finally:
        sys.setprofile(None)
    assert made <= calls
