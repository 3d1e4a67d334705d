"""Does every payload come back as it was given, and is every other one refused?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.payload import MAX_BYTES, MAX_DEPTH
from postdate.domain.states import Status
from postdate.errors import Invalid, InvalidPayload
from postdate.testing.conformance.cases.texts import ODD
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

KEPT = [
    *ODD,
    "tab\tand\nnewline\x1b\x7f\x9f",
    "\\u0000",
    "\\\\u0000",
    "9" * 400,
    0,
    -1,
    2**53 + 1,
    -(2**63) - 1,
    10**308,
    0.1,
    1e-300,
    -0.0,
    True,
    None,
    "",
    [],
    {},
    [[], {"": [None]}],
    {"with.dot": {"$": "[0]"}},
]
NO_JSON: dict[str, Any] = {
    "NaN": {"n": float("nan")},
    "infinity": {"n": float("inf")},
    "an infinity within": {"n": [-float("inf")]},
    "NUL": {"n": "\x00"},
    "NUL in a name": {"\x00": 1},
    "a lone surrogate": {"n": ["a\ud800"]},
    "a lone surrogate in a name": {"\udc00": 1},
    "a set": {"n": {1, 2}},
    "bytes": {"n": b"x"},
    "a datetime": {"n": datetime(2027, 3, 9, tzinfo=UTC)},
    "a name that is a number": {1: "one", "1": "eins"},
    "a name that is None": {None: 1},
    "a number of 5000 digits": {"n": 10**5000},
    "a number of 400 digits within": {"n": [[10**399]]},
    "an array": [],
    "text": "{}",
    "nothing": None,
    "a number": 7,
}


class PayloadCases:
    """Payloads."""

    def test_a_payload_comes_back_as_it_was_given(self, scene: Scene) -> None:
        """P16: to the caller, to the handler, and to whoever it is copied for."""
        given = {}
        for number, value in enumerate(KEPT):
            payload = {"thing_id": f"post-{number}", "value": value, "ключ": [value]}
            made = scene.action(payload=payload)
            assert made.payload == scene.get(made).payload == payload
            given[scene.app.sync.reschedule(made.id, at=scene.clock.now()).id] = payload
        scene.tick()
        assert {ctx.action.id: ctx.action.payload for ctx in scene.runs} == given
        assert {scene.app.sync.get(action_id).status for action_id in given} == {Status.PUBLISHED}

    def test_what_the_verb_answers_is_what_it_stored(self, scene: Scene) -> None:
        """P16: a tuple is an array from the start, and the caller's own dict is not the action's."""
        inner = [1]
        made = scene.action(payload={"pair": (1, 2), "deep": {"list": inner}})
        inner.append(2)
        assert made.payload == scene.get(made).payload == {"pair": [1, 2], "deep": {"list": [1]}}

    def test_what_is_no_json_that_both_databases_keep_is_refused(self, scene: Scene, outsider: Outsider) -> None:
        """P16: NaN and infinities, NUL, lone surrogates, names that are no text, numbers without end."""
        before = outsider.contents()
        for name, payload in NO_JSON.items():
            try:
                scene.app.sync.schedule(POST, payload, at=scene.clock.now())
            except InvalidPayload:
                continue
            pytest.fail(f"{name} was let in")
        assert outsider.contents() == before

    def test_the_largest_payload_is_256_kib_to_the_byte(self, scene: Scene, outsider: Outsider) -> None:
        """P16: of JSON in UTF-8; one byte more is refused."""
        frame = len('{"x": ""}')
        largest = {"x": "é" * ((MAX_BYTES - frame) // 2) + "x" * ((MAX_BYTES - frame) % 2)}
        made = scene.action(payload=largest)
        assert scene.get(made).payload == largest
        before = outsider.contents()
        with pytest.raises(InvalidPayload, match=str(MAX_BYTES)):
            scene.action(payload={"x": f"{largest['x']}x"})
        assert outsider.contents() == before

    def test_numbers_that_a_database_writes_out_keep_their_value(self, scene: Scene) -> None:
        """P16: PostgreSQL writes the largest float in 309 digits; one too many of them is refused by name."""
        largest = 1.7976931348623157e308
        made = scene.get(scene.action(payload={"x": largest}))
        assert float(str(made.payload["x"])) == largest
        try:
            many = scene.action(payload={"x": [1e308] * 5000})
        except Invalid:
            assert scene.app.sync.list() == [made]
        else:
            assert scene.get(many).payload == {"x": [1e308] * 5000}

    def test_a_deep_payload_can_be_run_or_is_refused(self, scene: Scene) -> None:
        """P16: whatever was admitted can be read, copied and run."""
        deepest = _nested(MAX_DEPTH - 1)
        made = scene.action(payload=deepest)
        scene.app.sync.reschedule(made.id, at=scene.clock.now())
        for depth in (MAX_DEPTH, 900, 5_000, 100_000):
            with pytest.raises(InvalidPayload):
                scene.action(payload=_nested(depth))
        scene.tick()
        assert [ctx.action.payload for ctx in scene.runs] == [deepest]


def _nested(depth: int) -> dict[str, object]:
    nested: list[object] = []
    for _ in range(depth - 1):
        nested = [nested]
    return {"x": nested}
