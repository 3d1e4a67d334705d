"""Does every value come back as it was given, and is every other one refused?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.outcome import Deferred, NotSent, Published, Rejected
from postdate.domain.payload import MAX_BYTES
from postdate.domain.states import Reason, Status
from postdate.errors import Invalid, InvalidInstant, InvalidPayload, InvalidText
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

CONTROL = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
SURROGATES = ["\ud800", "\udfff", "\udcff"]
ODD = [
    "é",
    "ß",
    "Ω",
    "日本",
    "🎉",
    "👩‍👩‍👧",
    "\u2028",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\uffff",
    "\U0010ffff",
    "'\"\\%:{}?$1",
]
NAMES = ["target", "thing", "occurrence", "overlap_key", "idempotency_key", "actor"]
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
NAIVE = datetime(2027, 3, 9, 12)  # noqa: DTZ001 - naive on purpose

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


def asked_with(name: str, value: Any) -> dict[str, Any]:
    """Return arguments of `schedule` in which one name has this value."""
    return {"payload": {"thing_id": value}} if name == "thing" else {name: value}


class TextCases:
    """Text."""

    @pytest.mark.parametrize("name", NAMES)
    def test_control_characters_and_lone_surrogates_are_refused_in_names(
        self, scene: Scene, outsider: Outsider, name: str
    ) -> None:
        """C0, DEL, C1, NUL among them: refused by name, before anything is written."""
        before = outsider.contents()
        for bad in (*CONTROL, *SURROGATES):
            with pytest.raises(Invalid) as refused:
                self._schedule(scene, name, f"a{bad}b")
            assert name.removesuffix("_key") in refused.value.field, refused.value.field
        for bad in ("", "x" * 256, 7, b"x", ["x"]):
            if (name, bad) != ("occurrence", ""):
                with pytest.raises(Invalid):
                    self._schedule(scene, name, bad)
        assert outsider.contents() == before

    @pytest.mark.parametrize("name", NAMES)
    def test_every_other_character_comes_back_as_it_was_given(self, scene: Scene, name: str) -> None:
        """Emoji and astral ones, and what looks like SQL or JSON; the longest name counts characters, not bytes."""
        for odd in (*ODD, "🎉" * 255):
            made = self._schedule(scene, name, odd)
            assert scene.get(made) == made
            found = {
                "target": made.target_key,
                "thing": made.thing_id,
                "occurrence": made.occurrence,
                "overlap_key": made.overlap_key,
                "actor": scene.app.sync.history(made.id)[0].actor,
                "idempotency_key": odd,
            }
            assert found[name] == odd
            if name in {"target", "thing"}:
                assert scene.app.sync.list(**{name: odd}) == [made]
            if name == "idempotency_key":
                assert self._schedule(scene, name, odd) == made
            scene.app.sync.cancel(made.id)

    def test_the_view_refuses_the_names_that_the_verbs_refuse(self, scene: Scene, outsider: Outsider) -> None:
        """C0, DEL and C1 in every part of the key and in the overlap key."""
        before = outsider.contents()
        good = {"action_type": POST, "payload": {"thing_id": "x"}, "publish_at": scene.clock.now()}
        for bad in CONTROL:
            name = f"a{bad}b"
            broken: list[dict[str, Any]] = [
                {"action_type": name},
                {"target_key": name},
                {"payload": {"thing_id": name}},
                {"occurrence": name},
                {"overlap_key": name},
            ]
            for each in broken:
                with pytest.raises((Refusal, ValueError)):  # the driver itself refuses NUL on PostgreSQL
                    outsider.insert(**{**good, **each})
        assert outsider.contents() == before

    def test_a_filter_takes_no_name_that_there_cannot_be(self, scene: Scene) -> None:
        """Refused as such, rather than by the driver."""
        for bad in ("\x00", "\ud800"):
            for name in ("thing", "target", "action_type"):
                with pytest.raises(Invalid):
                    scene.app.sync.list(**{name: bad})

    def test_notes_are_refused_or_kept(self, scene: Scene) -> None:
        """A person's words, as they were."""
        for bad in ("a\x00b", "a\ud800b", "", "x" * 2001):
            with pytest.raises(InvalidText, match="note"):
                scene.app.sync.cancel(scene.action().id, note=bad)
        for good in (*ODD, "🎉" * 2000):
            action = scene.action()
            scene.app.sync.cancel(action.id, note=good)
            assert scene.app.sync.history(action.id)[-1].detail["note"] == good

    @pytest.mark.parametrize("foreign", [*ODD, "a\x00b", "a\ud800b", "tab\tand\nnewline\x1b[31m\x7f\x9f", "x" * 5000])
    def test_words_from_outside_are_made_storable_and_never_hold_a_row_back(self, scene: Scene, foreign: str) -> None:
        """P19, P22: the error and the provider's id, cleaned of NUL and lone surrogates and cut to length."""
        kept = foreign.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
        failed, published = scene.action(at=scene.clock.now()), scene.action(at=scene.clock.now())

        def answer(ctx: Any) -> Published:
            if ctx.action.id == failed.id:
                raise Rejected(foreign)
            return Published(provider_id=foreign)

        scene.answer = answer
        scene.tick()
        assert (scene.get(failed).status, scene.get(failed).last_error) == (Status.FAILED, kept[:2000])
        assert scene.app.sync.history(failed.id)[-1].detail["error"] == kept[:2000]
        assert (scene.get(published).status, scene.get(published).provider_id) == (Status.PUBLISHED, kept[:255])
        scene.app.sync.retry(failed.id)
        scene.answer = lambda _ctx: (_ for _ in ()).throw(ValueError(foreign))
        scene.tick()
        assert scene.get(failed).reason is Reason.UNCONFIRMED

    @staticmethod
    def _schedule(scene: Scene, name: str, value: Any) -> Any:
        return scene.app.sync.schedule(POST, **{"payload": {}, "at": scene.clock.now(), **asked_with(name, value)})


class PayloadCases:
    """Payloads."""

    @pytest.mark.parametrize(
        "value",
        [
            *ODD,
            "tab\tand\nnewline\x1b\x7f\x9f",
            "\\u0000",
            "\\\\u0000",
            0,
            -1,
            2**53 + 1,
            -(2**63) - 1,
            10**308,
            "9" * 400,
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
        ],
        ids=ascii,
    )
    def test_a_payload_comes_back_as_it_was_given(self, scene: Scene, value: object) -> None:
        """P16: to the caller, to the handler, and to whoever it is copied for."""
        payload = {"thing_id": "post-1", "value": value, "ключ": [value]}
        made = scene.action(payload=payload)
        assert made.payload == scene.get(made).payload == payload
        moved = scene.app.sync.reschedule(made.id, at=scene.clock.now())
        scene.tick()
        assert [ctx.action.payload for ctx in scene.runs] == [payload]
        assert scene.get(moved).status is Status.PUBLISHED

    def test_what_the_verb_answers_is_what_it_stored(self, scene: Scene) -> None:
        """P16: a tuple is an array from the start, and the caller's own dict is not the action's."""
        given = {"pair": (1, 2), "deep": {"list": [1]}}
        made = scene.action(payload=given)
        given["deep"]["list"].append(2)  # type: ignore[call-overload]
        assert made.payload == scene.get(made).payload == {"pair": [1, 2], "deep": {"list": [1]}}

    @pytest.mark.parametrize("payload", NO_JSON.values(), ids=NO_JSON)
    def test_what_is_no_json_that_both_databases_keep_is_refused(
        self, scene: Scene, outsider: Outsider, payload: Any
    ) -> None:
        """P16: NaN and infinities, NUL, lone surrogates, keys that are no text, integers without end."""
        before = outsider.contents()
        with pytest.raises(InvalidPayload):
            scene.app.sync.schedule(POST, payload, at=scene.clock.now())
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

    @pytest.mark.parametrize("depth", [50, 500, 900, 5_000, 100_000])
    def test_a_deep_payload_is_kept_or_refused_but_never_stuck(self, scene: Scene, depth: int) -> None:
        """P16: whatever was admitted can be read and run; 50 levels always can."""
        nested: Any = []
        for _ in range(depth):
            nested = [nested]
        try:
            made = scene.action(payload={"x": nested}, at=scene.clock.now())
        except InvalidPayload:
            assert depth > 50
            assert scene.app.sync.list() == []
        else:
            scene.tick()
            assert scene.get(made).status is Status.PUBLISHED


class InstantCases:
    """Instants."""

    @pytest.mark.parametrize("instant", [FIRST, LAST, datetime(1970, 1, 1, tzinfo=UTC), LAST - timedelta(hours=9)])
    def test_an_instant_comes_back_to_the_microsecond(self, scene: Scene, instant: datetime) -> None:
        """P17, P74, P99: from the first to the last, in every column that holds one."""
        made = scene.action(at=instant, expires_at=LAST)
        assert scene.get(made) == made
        assert (made.publish_at, made.expires_at) == (instant, LAST)
        until = None if instant == LAST else instant + timedelta(microseconds=1)
        assert scene.app.sync.list(since=instant, until=until) == [made]
        moved = scene.app.sync.reschedule(made.id, at=LAST)
        scene.clock.move_to(LAST - timedelta(days=1))
        assert scene.tick().due_count == 0
        scene.answer = lambda _ctx: (_ for _ in ()).throw(Deferred(LAST))
        scene.app.sync.post_now(moved.id)
        scene.tick()
        (deferred,) = scene.app.sync.list(status="queued")
        assert deferred.next_attempt_at == LAST

    def test_an_instant_is_utc_however_it_is_told(self, scene: Scene) -> None:
        """P17, P74."""
        told = datetime(2027, 3, 9, 12, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
        for at in (told, told.isoformat(), told.astimezone(UTC).isoformat().replace("+00:00", "Z")):
            made = scene.action(at=at)
            assert made.publish_at == told
            assert scene.get(made).publish_at.tzinfo is UTC

    @pytest.mark.parametrize("naive", [NAIVE, NAIVE.isoformat()])
    def test_a_naive_datetime_is_refused_everywhere(self, scene: Scene, outsider: Outsider, naive: Any) -> None:
        """P95, P98, P100: it names no instant."""
        action, now = scene.action(), scene.clock.now()
        before = outsider.contents()
        calls: list[Any] = [
            lambda: scene.action(at=naive),
            lambda: scene.action(at=now, expires_at=naive),
            lambda: scene.app.sync.reschedule(action.id, at=naive),
            lambda: scene.app.sync.reschedule(action.id, at=now, expires_at=naive),
            lambda: scene.app.sync.list(since=naive),
            lambda: scene.app.sync.list(until=naive),
            lambda: Deferred(naive),
        ]
        for call in calls:
            with pytest.raises(Invalid):
                call()
        assert outsider.contents() == before

    @pytest.mark.parametrize(
        "odd", [1_800_000_000, 1.8e9, "", "now", "2027-03-09", None, FIRST.replace(tzinfo=timezone(timedelta(hours=1)))]
    )
    def test_what_is_no_instant_is_refused(self, scene: Scene, outsider: Outsider, odd: Any) -> None:
        """P99, P100: numbers, words, days, and what falls outside the calendar once it is in UTC."""
        before = outsider.contents()
        with pytest.raises(Invalid):
            scene.app.sync.schedule(POST, {}, at=odd)
        if odd is not None:
            with pytest.raises(InvalidInstant):
                scene.app.sync.schedule(POST, {}, at=scene.clock.now(), expires_at=odd)
        assert outsider.contents() == before

    def test_waits_in_fractions_are_kept_as_whole_microseconds(self, scene: Scene, outsider: Outsider) -> None:
        """P99: no instant ever becomes a float or a text."""
        action = scene.action(at=scene.clock.now())
        scene.answer = lambda _ctx: (_ for _ in ()).throw(NotSent("busy", retry_after=100.1234567))
        scene.tick()
        due = scene.get(action).next_attempt_at
        assert due is not None
        assert scene.clock.now() + timedelta(seconds=100) < due
        if outsider.is_sqlite:
            columns = {"queue": ["due_at", "attempt_count"], "actions": ["publish_at", "created_at"]}
            for table, names in columns.items():
                for name in names:
                    assert outsider.rows(f"select typeof({name}) from {{ns}}{table}") == [("integer",)]

    def test_the_schema_refuses_fractions(self, scene: Scene, outsider: Outsider) -> None:
        """P20, P99: attempt counts are whole on both databases, and so are SQLite's instants."""
        scene.action(Status.SUBMITTED)
        scene.action(Status.PUBLISHED)
        before = outsider.contents()
        broken = [("queue", "attempt_count", -1), ("outcomes", "attempt_count", -1)]
        if outsider.is_sqlite:
            broken += [("queue", name, 2.5) for name in ("attempt_count", "due_at", "lease_until", "submitted_at")]
            broken += [("queue", name, "soon") for name in ("attempt_count", "due_at", "lease_until")]
            broken += [("outcomes", name, 2.5) for name in ("attempt_count", "finished_at", "submitted_at")]
        for table, name, value in broken:
            with pytest.raises(Refusal):
                outsider.run(f"update {{ns}}{table} set {name} = :value", value=value)
        if outsider.is_sqlite:
            for name in ("publish_at", "expires_at", "created_at"):
                row = {"action_type": POST, "payload": {}, "publish_at": scene.clock.now(), name: 2.5}
                with pytest.raises(Refusal):
                    outsider.insert(**row)
        assert outsider.contents() == before
