"""Does every text come back as it was given, and is every other one refused?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.outcome import Published, Rejected
from postdate.domain.states import Reason, Status
from postdate.errors import Invalid, InvalidText
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from postdate.context import Context
    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider, Values
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
FOREIGN = [*ODD, "a\x00b", "a\ud800b", "tab\tand\nnewline\x1b[31m\x7f\x9f", "x" * 5000]
NAMES = ["target", "thing", "occurrence", "overlap_key", "idempotency_key", "actor"]


class TextCases:
    """Names, notes and words from outside."""

    @pytest.mark.parametrize("name", NAMES)
    def test_control_characters_and_lone_surrogates_are_refused_in_names(
        self, scene: Scene, outsider: Outsider, name: str
    ) -> None:
        """C0, DEL, C1, NUL among them: refused by name, before anything is written."""
        before = outsider.contents()
        for bad in (*CONTROL, *SURROGATES):
            with pytest.raises(Invalid) as refused:
                _schedule(scene, name, f"a{bad}b")
            assert name.removesuffix("_key") in refused.value.field, refused.value.field
        for odd in ("", "x" * 256, 7, b"x", ["x"]):
            if (name, odd) != ("occurrence", ""):
                with pytest.raises(Invalid):
                    _schedule(scene, name, odd)
        assert outsider.contents() == before

    def test_they_are_refused_in_the_names_of_types_and_in_a_provider_s_id(self, scene: Scene) -> None:
        """Where an app registers a type, and where a person tells an id."""
        unconfirmed = scene.action(Status.FAILED, Reason.UNCONFIRMED)
        for bad in ("", *(f"a{character}b" for character in (*CONTROL, *SURROGATES))):
            with pytest.raises(Invalid, match="action_type"):
                scene.app.action(bad)(_nothing)
            with pytest.raises(Invalid, match="provider_id"):
                scene.app.sync.confirm(unconfirmed.id, provider_id=bad)
        assert scene.get(unconfirmed) == unconfirmed
        assert scene.app.sync.confirm(unconfirmed.id, provider_id="🎉" * 255).provider_id == "🎉" * 255

    @pytest.mark.parametrize("name", NAMES)
    def test_every_other_character_comes_back_as_it_was_given(self, scene: Scene, name: str) -> None:
        """Emoji and astral ones, and what looks like SQL or JSON; the longest name counts characters, not bytes."""
        for odd in (*ODD, "🎉" * 255):
            made = _schedule(scene, name, odd)
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
                only: Values = {name: odd}
                assert scene.app.sync.list(**only) == [made]
            if name == "idempotency_key":
                assert _schedule(scene, name, odd) == made
            scene.app.sync.cancel(made.id)

    def test_the_view_refuses_the_names_that_the_verbs_refuse(self, scene: Scene, outsider: Outsider) -> None:
        """C0, DEL and C1 in every part of the key and in the overlap key."""
        before = outsider.contents()
        good: Values = {"action_type": POST, "payload": {"thing_id": "x"}, "publish_at": scene.clock.now()}
        with outsider.connection() as connection:
            for bad in CONTROL:
                name = f"a{bad}b"
                broken: list[Values] = [
                    {"action_type": name},
                    {"target_key": name},
                    {"payload": {"thing_id": name}},
                    {"occurrence": name},
                    {"overlap_key": name},
                ]
                for each in broken:
                    with pytest.raises(Refusal):
                        outsider.insert("scheduled_actions", connection, **{**good, **each})
                    connection.rollback()
        assert outsider.contents() == before

    def test_a_filter_takes_no_name_that_there_cannot_be(self, scene: Scene) -> None:
        """Refused as such, rather than by the driver."""
        for bad in ("\x00", "\ud800"):
            for name in ("thing", "target", "action_type"):
                only: Values = {name: bad}
                with pytest.raises(Invalid):
                    scene.app.sync.list(**only)

    def test_notes_are_refused_or_kept(self, scene: Scene) -> None:
        """A person's words, as they were."""
        for bad in ("a\x00b", "a\ud800b", "", "x" * 2001):
            with pytest.raises(InvalidText, match="note"):
                scene.app.sync.cancel(scene.action().id, note=bad)
        for good in (*ODD, "🎉" * 2000):
            action = scene.action()
            scene.app.sync.cancel(action.id, note=good)
            assert scene.app.sync.history(action.id)[-1].detail["note"] == good

    def test_words_from_outside_are_made_storable_and_never_hold_a_row_back(self, scene: Scene) -> None:
        """P19, P22: the error and the provider's id, cleaned of NUL and lone surrogates and cut to length."""
        failed = {_due(scene).id: foreign for foreign in FOREIGN}
        published = {_due(scene).id: foreign for foreign in FOREIGN}

        def answer(ctx: Context) -> Published:
            if ctx.action.id in failed:
                raise Rejected(failed[ctx.action.id])
            return Published(provider_id=published[ctx.action.id])

        scene.answer = answer
        scene.tick()
        for action_id, foreign in failed.items():
            kept = _storable(foreign)
            action = scene.app.sync.get(action_id)
            assert (action.status, action.last_error) == (Status.FAILED, kept[:2000])
            assert scene.app.sync.history(action_id)[-1].detail["error"] == kept[:2000]
        for action_id, foreign in published.items():
            kept = _storable(foreign)
            action = scene.app.sync.get(action_id)
            assert (action.status, action.provider_id) == (Status.PUBLISHED, kept[:255])

    def test_an_exception_with_any_words_leaves_a_run_unconfirmed(self, scene: Scene) -> None:
        """P19, P63: also one that fails to say what it is."""

        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError("no words")

        errors: list[Exception] = [*map(ValueError, FOREIGN), Mute()]
        raised = {_due(scene).id: error for error in errors}

        def answer(ctx: Context) -> None:
            raise raised[ctx.action.id]

        scene.answer = answer
        scene.tick()
        assert {action.reason for action in scene.app.sync.list()} == {Reason.UNCONFIRMED}


def _storable(foreign: str) -> str:
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800]", "\ufffd", foreign)


def _schedule(scene: Scene, name: str, value: Any) -> Action:
    asked: Values = {"payload": {"thing_id": value}} if name == "thing" else {name: value}
    return scene.app.sync.schedule(POST, **{"payload": {}, "at": scene.clock.now(), **asked})


async def _nothing(_ctx: Context, _payload: dict[str, object]) -> None: ...


def _due(scene: Scene) -> Action:
    return scene.action(at=scene.clock.now())
