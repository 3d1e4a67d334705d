"""Does what a verb does in a caller's transaction stand and fall with it?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from postdate.domain.states import Reason, Status
from postdate.errors import (
    ActionNotFound,
    AlreadyPublished,
    AlreadyScheduled,
    IdempotencyConflict,
    Invalid,
    InvalidPayload,
    Misconfigured,
    MoveRefused,
    OverlapTaken,
    OwnerNotFound,
    PostdateError,
    RetriesExhausted,
)
from postdate.testing.conformance.caller import KINDS, Caller
from postdate.testing.scene import POST
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.domain.action import Action
    from postdate.testing.conformance.caller import Kind
    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

THING = {"thing_id": "post-1"}
BEGINNINGS = ["nothing", "a read", "a write"]


class TransactionCases:
    """`connection=`: the action exists if and only if the caller's row does."""

    @pytest.fixture(params=KINDS)
    def kind(self, request: pytest.FixtureRequest) -> Kind:
        """Each kind of connection."""
        kind: Kind = request.param
        return kind

    @pytest.fixture
    def caller(self, kind: Kind, scene: Scene, outsider: Outsider) -> Iterator[Caller]:
        """A host with a connection of that kind."""
        caller = Caller(scene, outsider, kind)
        yield caller
        caller.close()

    def test_what_the_caller_rolls_back_never_was(self, scene: Scene, outsider: Outsider, caller: Caller) -> None:
        """Every verb, whatever the transaction began with; on SQLite the driver's own transactions included."""
        stage = _Stage(scene)
        before = outsider.contents()
        for beginning in BEGINNINGS:
            _begin(caller, beginning)
            stage.act(caller)
            assert outsider.contents() == before, f"nothing is committed for the caller, who began with {beginning}"
            caller.rollback()
            assert outsider.contents() == before, f"all is rolled back of what began with {beginning}"

    def test_what_the_caller_commits_is_there(self, scene: Scene, outsider: Outsider, caller: Caller) -> None:
        """And not a moment earlier."""
        for beginning in BEGINNINGS:
            stage = _Stage(scene)
            before = outsider.contents()
            _begin(caller, beginning)
            made = stage.act(caller)
            assert outsider.contents() == before, beginning
            caller.commit()
            assert [scene.get(action) for action in made] == made, "as each verb said"
            assert (len(outsider.contents()["workspaces"]) > len(before["workspaces"])) == (beginning == "a write")

    def test_a_refused_verb_leaves_the_caller_s_transaction_as_it_was(
        self, scene: Scene, outsider: Outsider, caller: Caller
    ) -> None:
        """What the caller wrote before and after it is committed; of the refused verb there is no trace."""
        refusals = list(_refusals(scene))
        before = outsider.contents()
        for error, verb, args, kwargs in refusals:
            caller.write("insert into {ns}workspaces (id) values (:id)", id=uuid4())
            with pytest.raises(error):
                caller.call(verb, *args, **kwargs)
            caller.read()
        caller.commit()
        after = outsider.contents()
        assert len(after.pop("workspaces")) == len(before.pop("workspaces")) + len(refusals)
        assert after == before

    def test_a_refused_row_of_a_batch_leaves_the_caller_s_transaction_as_it_was(
        self, scene: Scene, caller: Caller
    ) -> None:
        """P55: the others are committed."""
        scene.action(payload=THING)
        at = scene.clock.now()
        batch = [NewAction(action_type=POST, payload=payload, at=at) for payload in ({"n": 1}, THING, {"n": 2})]
        one, refused, two = caller.call("schedule_many", batch)
        assert isinstance(refused, AlreadyScheduled)
        caller.read()
        caller.commit()
        assert scene.get(one).status is scene.get(two).status is Status.QUEUED

    def test_an_idempotency_key_is_rolled_back_with_what_it_made(self, scene: Scene, caller: Caller) -> None:
        """The key is free again: for another request, too."""
        at = scene.clock.now()
        first = caller.call("schedule", POST, {"n": 1}, at=at, idempotency_key="k")
        assert caller.call("schedule", POST, {"n": 1}, at=at, idempotency_key="k").id == first.id
        caller.rollback()
        second = scene.app.sync.schedule(POST, {"n": 2}, at=at, idempotency_key="k")
        with pytest.raises(ActionNotFound):
            scene.get(first)
        assert caller.call("schedule", POST, {"n": 2}, at=at, idempotency_key="k").id == second.id

    def test_the_caller_sees_what_it_has_done_so_far(self, scene: Scene, caller: Caller) -> None:
        """The reading verbs work in the transaction, too."""
        made = caller.call("schedule", POST, THING, at=scene.clock.now(), actor="ana")
        assert caller.call("get", made.id) == made
        assert caller.call("list", thing="post-1") == [made]
        assert [event.actor for event in caller.call("history", made.id)] == ["ana"]
        with pytest.raises(ActionNotFound):
            scene.get(made)

    def test_a_connection_in_autocommit_is_refused(self, scene: Scene, outsider: Outsider, kind: Kind) -> None:
        """There is no transaction that the action could stand and fall with."""
        before = outsider.contents()
        caller = Caller(scene, outsider, kind, autocommit=True)
        try:
            with pytest.raises(Misconfigured, match="autocommit"):
                caller.call("schedule", POST, {}, at=scene.clock.now())
        finally:
            caller.close()
        assert outsider.contents() == before

    def test_a_connection_of_the_other_world_is_refused(self, scene: Scene, outsider: Outsider, kind: Kind) -> None:
        """An asynchronous connection in a synchronous verb, and the other way round."""
        before, caller = outsider.contents(), Caller(scene, outsider, kind)
        caller.is_async = not caller.is_async
        try:
            with pytest.raises(Misconfigured, match="connection="):
                caller.call("schedule", POST, {}, at=scene.clock.now())
        finally:
            caller.is_async = not caller.is_async
            caller.close()
        assert outsider.contents() == before


class _Stage:
    """Actions in the states that the verbs work on."""

    def __init__(self, scene: Scene) -> None:
        self._at = scene.clock.now() + timedelta(days=1)
        self._queued = [scene.action() for _ in range(3)]
        self._failed = scene.action(Status.FAILED, Reason.REJECTED)
        self._unconfirmed = [scene.action(Status.FAILED, Reason.UNCONFIRMED) for _ in range(2)]
        self._published = scene.action(Status.PUBLISHED)

    def act(self, caller: Caller) -> list[Action]:
        """Call every verb that writes, and return the actions as they say that they stand."""
        first, second, third = (action.id for action in self._queued)
        at = self._at
        return [
            caller.call("schedule", POST, {"thing_id": str(first)}, at=at, idempotency_key=str(first), actor="ana"),
            *caller.call("schedule_many", [NewAction(action_type=POST, payload={"n": n}, at=at) for n in (1, 2)]),
            caller.call("cancel", first),
            caller.call("reschedule", second, at=at),
            caller.call("post_now", third),
            caller.call("post_now", self._published.id),
            caller.call("retry", self._failed.id),
            caller.call("confirm", self._unconfirmed[0].id),
            caller.call("dismiss", self._unconfirmed[1].id),
        ]


def _begin(caller: Caller, beginning: str) -> None:
    if beginning == "a read":
        caller.read()
    if beginning == "a write":
        caller.write("insert into {ns}workspaces (id) values (:id)", id=uuid4())


def _refusals(scene: Scene) -> Iterator[tuple[type[PostdateError], str, tuple[Any, ...], dict[str, Any]]]:
    """Yield calls of verbs that must be refused, each with its error."""
    at = scene.clock.now() + timedelta(days=1)
    published = scene.action(Status.PUBLISHED, payload={"thing_id": "published"})
    queued = scene.action(payload=THING, overlap_key="nightly", idempotency_key="k")
    exhausted = scene.action(Status.FAILED, Reason.EXHAUSTED)
    for _ in range(4):
        scene.app.sync.retry(exhausted.id)
        scene.answer = lambda _ctx: 1 / 0
        scene.tick()
    failed = scene.get(exhausted)
    assert (failed.status, failed.attempt_count) == (Status.FAILED, 5)
    yield AlreadyScheduled, "schedule", (POST, THING), {"at": at}
    yield AlreadyPublished, "schedule", (POST, {"thing_id": "published"}), {"at": at, "idempotency_key": "new"}
    yield OverlapTaken, "schedule", (POST, {}), {"at": at, "overlap_key": "nightly"}
    yield OwnerNotFound, "schedule", (POST, {}), {"at": at, "workspace": uuid4()}
    yield (
        IdempotencyConflict,
        "schedule",
        (POST, {}),
        {
            "at": at,
            "workspace": scene.workspace,
            "idempotency_key": "k",
        },
    )
    yield Invalid, "schedule", (POST, {}), {"at": "soon"}
    yield InvalidPayload, "schedule", (POST, {"n": float("nan")}), {"at": at}
    yield ActionNotFound, "cancel", (uuid4(),), {}
    yield MoveRefused, "reschedule", (published.id,), {"at": at}
    yield Invalid, "reschedule", (queued.id,), {"at": "soon"}
    yield MoveRefused, "post_now", (failed.id,), {}
    yield MoveRefused, "retry", (queued.id,), {}
    yield RetriesExhausted, "retry", (failed.id,), {}
    yield MoveRefused, "confirm", (published.id,), {}
    yield MoveRefused, "dismiss", (queued.id,), {}
    yield ActionNotFound, "history", (UUID(int=1),), {}
    yield Invalid, "list", (), {"status": "done"}
