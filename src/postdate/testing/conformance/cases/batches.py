"""Does a batch lose only what collides?"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from postdate.domain.states import Reason, Status
from postdate.errors import (
    AlreadyPublished,
    AlreadyScheduled,
    IdempotencyConflict,
    InvalidInstant,
    InvalidPayload,
    InvalidText,
    InvalidZone,
    OverlapTaken,
    OwnerNotFound,
    PostdateError,
    UnknownActionType,
)
from postdate.testing.scene import POST
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene


class BatchCases:
    """`schedule_many`: one transaction, one answer for each row."""

    def test_every_refused_row_drops_out_alone_and_the_order_is_kept(self, scene: Scene, outsider: Outsider) -> None:
        """P55, P97: each refusal there is, between rows that must get in."""
        refused = _refused_rows(scene)
        before = outsider.contents()
        batch: list[NewAction] = []
        for number, (_, row) in enumerate(refused):
            batch += [_new(scene, payload={"thing_id": f"good-{number}"}), row]
        results = scene.app.sync.schedule_many(batch, actor="ana")
        assert len(results) == len(batch)
        good, bad = results[::2], results[1::2]
        assert [type(error) for error in bad] == [error for error, _ in refused]
        made = [action for action in good if not isinstance(action, PostdateError)]
        assert [action.thing_id for action in made] == [f"good-{number}" for number in range(len(refused))]
        assert [scene.get(action) for action in made] == made
        added = {table: len(rows) - len(before[table]) for table, rows in outsider.contents().items()}
        grown = {table: len(made) for table in ("actions", "queue", "action_events")}
        assert added == {"outcomes": 0, "idempotency": 0, "profiles": 0, "workspaces": 0, **grown}

    def test_of_two_rows_with_one_key_the_first_gets_in(self, scene: Scene) -> None:
        """P26, P55: within one batch as between two, and whichever key it is."""
        thing = {"thing_id": "post-1"}
        rows = [
            _new(scene, payload=thing, target="a"),
            _new(scene, payload={}, overlap_key="nightly"),
            _new(scene, payload=thing, target="b"),
            _new(scene, payload={}, overlap_key="nightly"),
            _new(scene, payload=thing, target="a"),
        ]
        first, held, other, overlapping, second = scene.app.sync.schedule_many(rows)
        assert isinstance(overlapping, OverlapTaken)
        assert isinstance(second, AlreadyScheduled)
        assert not isinstance(first, PostdateError)
        assert not isinstance(held, PostdateError)
        assert (second.existing, overlapping.existing) == (first.id, held.id)
        assert not isinstance(other, PostdateError)

    def test_an_empty_batch_is_an_empty_answer(self, scene: Scene, outsider: Outsider) -> None:
        """Nothing was asked."""
        before = outsider.contents()
        assert scene.app.sync.schedule_many([]) == []
        assert outsider.contents() == before

    def test_a_thousand_rows_get_in_as_they_were_asked(self, scene: Scene) -> None:
        """In their order, each with its own values."""
        at = scene.clock.now()
        things = [(str(n), at + timedelta(seconds=n % 7)) for n in range(1000)]
        rows = [_new(scene, payload={"thing_id": thing}, at=due) for thing, due in things]
        made = [one for one in scene.app.sync.schedule_many(rows) if not isinstance(one, PostdateError)]
        assert [(one.thing_id, one.publish_at) for one in made] == things
        assert [one.id for one in made] == sorted(one.id for one in made), "ids rise in the order of the rows"
        in_order = sorted(made, key=lambda one: (one.publish_at, one.id))
        assert scene.app.sync.list(limit=1000) == in_order

    def test_replays_in_a_batch_answer_what_the_first_was_answered(self, scene: Scene, outsider: Outsider) -> None:
        """A key that repeats within the batch is one request told twice; another body under it is a conflict."""
        earlier = scene.app.sync.schedule(POST, {"n": 0}, at=scene.clock.now(), idempotency_key="earlier")
        taken = scene.action(payload={"thing_id": "taken"})
        before = len(outsider.contents()["actions"])
        rows = [
            _new(scene, payload={"n": 1}, idempotency_key="k"),
            _new(scene, payload={"n": 1}, idempotency_key="k"),
            _new(scene, payload={"n": 2}, idempotency_key="k"),
            _new(scene, payload={"n": 0}, idempotency_key="earlier"),
            _new(scene, payload={"thing_id": "taken"}, idempotency_key="refused"),
            _new(scene, payload={"thing_id": "taken"}, idempotency_key="refused"),
        ]
        first, same, other, replay, refused, again = scene.app.sync.schedule_many(rows)
        assert same == first
        assert isinstance(other, IdempotencyConflict)
        assert replay == earlier
        assert isinstance(refused, AlreadyScheduled)
        assert isinstance(again, AlreadyScheduled)
        assert refused.existing == again.existing == taken.id
        assert len(outsider.contents()["actions"]) == before + 1
        assert len(outsider.contents()["idempotency"]) == 2, "the refused one gave its key back"

    def test_one_key_of_two_owners_is_two_keys(self, scene: Scene) -> None:
        """Nobody is answered what another workspace has made."""
        scene.action(payload={"thing_id": "taken"})
        rows = [
            _new(scene, payload={"n": 1}, workspace=scene.workspace, idempotency_key="k"),
            _new(scene, payload={"thing_id": "taken"}, idempotency_key="k"),
            _new(scene, payload={"thing_id": "taken"}, idempotency_key="k"),
        ]
        ours, theirs, again = scene.app.sync.schedule_many(rows)
        assert not isinstance(ours, PostdateError)
        assert isinstance(theirs, AlreadyScheduled)
        assert isinstance(again, AlreadyScheduled)


def _new(scene: Scene, **asked: Any) -> NewAction:
    return NewAction(**{"action_type": POST, "payload": {}, "at": scene.clock.now(), **asked})


def _refused_rows(scene: Scene) -> list[tuple[type[PostdateError], NewAction]]:
    """Return a row for each way to be refused, with its error."""
    scene.action(payload={"thing_id": "active"}, overlap_key="held")
    scene.action(Status.SUBMITTED, payload={"thing_id": "running"})
    scene.action(Status.PUBLISHED, payload={"thing_id": "published"})
    scene.action(Status.FAILED, Reason.UNCONFIRMED, payload={"thing_id": "unconfirmed"})
    naive = datetime(2027, 3, 9, 12)  # noqa: DTZ001 - naive on purpose
    rows: list[tuple[type[PostdateError], dict[str, Any]]] = [
        (AlreadyScheduled, {"payload": {"thing_id": "active"}}),
        (AlreadyScheduled, {"payload": {"thing_id": "running"}}),
        (AlreadyPublished, {"payload": {"thing_id": "published"}}),
        (AlreadyPublished, {"payload": {"thing_id": "unconfirmed"}}),
        (OverlapTaken, {"overlap_key": "held"}),
        (OwnerNotFound, {"workspace": uuid4()}),
        (OwnerNotFound, {"user": uuid4()}),
        (OwnerNotFound, {"user": uuid4(), "idempotency_key": "nobody"}),
        (UnknownActionType, {"action_type": "unheard_of"}),
        (InvalidText, {"target": "a\x00b"}),
        (InvalidText, {"payload": {"thing_id": "a\nb"}}),
        (InvalidText, {"occurrence": None}),
        (InvalidPayload, {"payload": {"n": float("nan")}}),
        (InvalidPayload, {"payload": {1: "one", "two": 2}}),
        (InvalidPayload, {"payload": [1]}),
        (InvalidInstant, {"at": naive}),
        (InvalidInstant, {"at": 1_800_000_000}),
        (InvalidInstant, {"expires_at": scene.clock.now() - timedelta(seconds=1)}),
        (InvalidZone, {"at": "2027-03-09T12:00", "tz": "Not/AZone"}),
        (InvalidZone, {"at": "2027-03-09T12:00"}),
    ]
    return [(error, _new(scene, **asked)) for error, asked in rows]
