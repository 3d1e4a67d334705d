"""Does a glance at a payload let through what a close look lets through, and nothing else?"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from postdate.domain import payload
from postdate.errors import Invalid


class Colour(StrEnum):
    RED = "red"


class Size(Enum):
    LARGE = "large"


class Model(BaseModel):
    a: int = 1


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from([10**400, -(10**309), 2**64, "\x00", "\\u0000", "\ud800", "[" * 120])
    | st.sampled_from(
        [b"x", Decimal(1), datetime(2027, 1, 1, tzinfo=UTC), Colour.RED, Size.LARGE, Model(), {1}, object]
    )
)
NAMES = st.text(max_size=5) | st.sampled_from(["thing_id", "\ud800", 1, None, True, 1.5, Colour.RED])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


def said(asked: dict[Any, Any]) -> str:
    """Return what is stored of it, told apart by type too, or what was wrong."""
    try:
        return repr(payload.checked(asked))
    except Invalid as error:
        return f"{error.field} {error.rule}"


@given(st.dictionaries(NAMES, VALUES, max_size=4))
@example(nested(100))
@example(nested(101))
@example({"text": "a" * payload.MAX_BYTES})
@example({"text": "a" * (payload.MAX_BYTES - 12)})
@example({"text": ["" for _ in range(80_000)]})
@example({"digits": "1" * 400})
@example({"at": -0.0, "of": 1.0, "or": 1})
def test_a_glance_and_a_close_look_agree(asked: dict[Any, Any]) -> None:
    glanced = said(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload, "_plain", lambda _: None)
        assert glanced == said(asked)
