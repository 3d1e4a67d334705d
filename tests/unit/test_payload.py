"""Which payloads and names may be stored?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postdate.domain.payload import MAX_BYTES, checked
from postdate.domain.text import name
from postdate.errors import InvalidPayload, InvalidText


def of_size(size: int) -> dict[str, object]:
    return {"text": "x" * (size - len('{"text": ""}'))}


def test_a_payload_may_have_256_kib_of_json_and_not_a_byte_more() -> None:
    assert checked(of_size(MAX_BYTES))
    with pytest.raises(InvalidPayload, match="262144 bytes"):
        checked(of_size(MAX_BYTES + 1))


def test_size_is_counted_in_bytes_not_in_characters() -> None:
    with pytest.raises(InvalidPayload):
        checked({"text": "🙂" * (MAX_BYTES // 4)})


@pytest.mark.parametrize(
    "odd",
    [
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": "\x00"},
        {"a\x00": 1},
        {"a": ["deep", {"b": "\\\x00"}]},
        {"a": "\ud800"},
        {"a": object()},
        {"a": {1, 2}},
        {"a": 10**5000},
        {"thing_id": 5},
        {"thing_id": ""},
        {"thing_id": "a\x1fb"},
        {"thing_id": "x" * 256},
        {"thing_id": ["x"]},
        [],
        "text",
        None,
    ],
)
def test_what_no_database_can_store_is_refused(odd: object) -> None:
    with pytest.raises((InvalidPayload, InvalidText)):
        checked(odd)


def test_nesting_without_end_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(InvalidPayload):
        checked(deep)


def test_text_that_only_looks_like_nul_is_kept() -> None:
    payload: dict[str, object] = {"a": "\\u0000", "b": "🙂\n\t\x1f", "thing_id": "🙂"}
    assert checked(payload) == payload


def test_a_thing_of_none_is_no_thing() -> None:
    assert checked({"thing_id": None, "a": 1}) == {"a": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=6))
def test_whatever_is_admitted_survives_the_way_through_json(payload: dict[str, object]) -> None:
    try:
        kept = checked(payload)
    except (InvalidPayload, InvalidText):
        return
    written = json.dumps(kept, ensure_ascii=False)
    assert "\\u0000" not in written.replace("\\\\", "")
    assert json.loads(written.encode().decode()) == kept


@pytest.mark.parametrize("odd", ["", "x" * 256, "a\x1fb", "\x00", "\x7f", "\x85", "\ud800", 5, None, b"x"])
def test_names_hold_nothing_that_could_split_a_key_or_break_a_database(odd: object) -> None:
    with pytest.raises(InvalidText):
        name(odd, field="target")


def test_names_may_be_in_any_script() -> None:
    assert name("São Paulo 🙂 漢字", field="target") == "São Paulo 🙂 漢字"
