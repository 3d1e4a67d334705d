"""Is everything of an owner gone, whatever was under way when the owner was deleted?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID, uuid4

import pytest

from postdate.domain.states import Cause, Reason, Status
from postdate.errors import PostdateError
from postdate.store.outcomes import Settling, settle_claimed
from postdate.store.queue import claim_due
from postdate.store.transaction import Transaction
from postdate.testing.conformance.cases.deletion import OURS, OWNERS
from postdate.testing.conformance.outsider import sqlstate
from postdate.testing.conformance.rival import Rival
from postdate.testing.factories import make_profile, make_workspace
from postdate.testing.moves import LEASE, lease_of, settlement
from postdate.testing.scene import POST
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

Deed: TypeAlias = "Callable[[Scene, Outsider, Action, Connection], Any]"


def _claim(scene: Scene, _outsider: Outsider, _action: Action, connection: Connection) -> object:
    now = scene.clock.now() + timedelta(days=1)
    tx = Transaction.on(connection, scene.app.kernel.names)
    return claim_due(
        tx, action_type=POST, now=now, limit=5, lease_token=uuid4(), lease_until=now + LEASE, worker="rival"
    )


def _settles(cause: Cause) -> Deed:
    def settle(scene: Scene, _outsider: Outsider, action: Action, connection: Connection) -> object:
        tx = Transaction.on(connection, scene.app.kernel.names)
        return _settle(scene, tx, [action], [cause])

    return settle


def _settle(scene: Scene, tx: Transaction, actions: Sequence[Action], causes: Sequence[Cause]) -> object:
    token = lease_of(tx, actions[0].id) or uuid4()
    now = scene.clock.now()
    pairs = zip(actions, causes, strict=True)
    endings = {action.id: settlement(cause, attempt_count=1, now=now) for action, cause in pairs}
    return settle_claimed(tx, Settling.of(tx.tables, token, endings), now=now, actor="engine")


def _verb(name: str, **kwargs: Any) -> Deed:
    return lambda scene, _outsider, action, connection: getattr(scene.app.sync, name)(
        action.id, connection=connection, **kwargs
    )


def _schedule(scene: Scene, _outsider: Outsider, _action: Action, connection: Connection) -> object:
    return scene.action(connection=connection, idempotency_key="new")


def _schedule_many(scene: Scene, _outsider: Outsider, _action: Action, connection: Connection) -> object:
    owners: Values = {"workspace": scene.workspace, "user": scene.user}
    rows = [NewAction(action_type=POST, payload={"n": n}, at=scene.clock.now(), **owners) for n in range(3)]
    made = scene.app.sync.schedule_many(rows, actor="ana", connection=connection)
    for one in made:
        if isinstance(one, PostdateError):
            raise one
    return made


def _insert_by_view(scene: Scene, outsider: Outsider, _action: Action, connection: Connection) -> object:
    owners = {"workspace_id": scene.workspace, "user_id": scene.user}
    return outsider.insert(
        "scheduled_actions", connection, action_type=POST, payload={}, publish_at=scene.clock.now(), **owners
    )


def _cancel_by_view(_scene: Scene, outsider: Outsider, action: Action, connection: Connection) -> object:
    statement = "update {ns}scheduled_actions set status = 'cancelled' where id = :id"
    return outsider.run(statement, connection, id=action.id)


_QUEUED: tuple[Status, Reason | None] = (Status.QUEUED, None)
_SUBMITTED: tuple[Status, Reason | None] = (Status.SUBMITTED, None)
_FAILED: tuple[Status, Reason | None] = (Status.FAILED, Reason.UNCONFIRMED)

DEEDS: dict[str, tuple[tuple[Status, Reason | None], Deed]] = {
    "claim": (_QUEUED, _claim),
    "settle as published": (_SUBMITTED, _settles(Cause.PUBLISHED)),
    "settle as unconfirmed": (_SUBMITTED, _settles(Cause.UNCONFIRMED)),
    "settle as not sent": (_SUBMITTED, _settles(Cause.NOT_SENT)),
    "schedule": (_QUEUED, _schedule),
    "schedule many": (_QUEUED, _schedule_many),
    "insert by the view": (_QUEUED, _insert_by_view),
    "cancel": (_QUEUED, _verb("cancel", free_idempotency_key=True)),
    "cancel by the view": (_QUEUED, _cancel_by_view),
    "reschedule": (_QUEUED, _verb("reschedule", at="2027-06-01T09:00Z")),
    "post now": (_QUEUED, _verb("post_now")),
    "post again": ((Status.PUBLISHED, None), _verb("post_now")),
    "retry": (_FAILED, _verb("retry")),
    "confirm": (_FAILED, _verb("confirm")),
    "dismiss": (_FAILED, _verb("dismiss")),
}


each_owner = pytest.mark.parametrize("owner", OWNERS)


class ConcurrentDeletionCases:
    """A deletion, and something that is done to the owner's action in another transaction."""

    @each_owner
    def test_what_is_under_way_when_its_owner_is_deleted_leaves_nothing(
        self, scene: Scene, outsider: Outsider, owner: str
    ) -> None:
        """P12, P13: the deletion waits for it, and then takes what came of it."""
        for deed in DEEDS:
            _, act, delete = _prepared(scene, outsider, deed, owner)
            with outsider.connection() as ours:
                act(ours)
                with Rival(outsider, delete) as deletion:
                    deletion.meet()
                    ours.commit()
            assert deletion.future.result() == 1, deed
            assert _left(outsider) == {}, deed

    @each_owner
    def test_what_meets_the_deletion_of_its_owner_leaves_nothing(
        self, scene: Scene, outsider: Outsider, owner: str
    ) -> None:
        """P12, P13: it finds nothing, or says that there is no such owner or action; no error of the database."""
        for deed in DEEDS:
            _, act, delete = _prepared(scene, outsider, deed, owner)
            with outsider.connection() as ours:
                delete(ours)
                with Rival(outsider, act) as rival:
                    rival.meet()
                    ours.commit()
            error = rival.future.exception()
            assert error is None or isinstance(error, PostdateError) or sqlstate(error) == "23503", deed
            assert _left(outsider) == {}, deed

    @each_owner
    def test_a_deletion_that_is_taken_back_has_harmed_nothing(
        self, scene: Scene, outsider: Outsider, owner: str
    ) -> None:
        """P12, P13: what waited for it goes on; claims and settles passed over what was locked, until next time."""
        for deed in DEEDS:
            action, act, delete = _prepared(scene, outsider, deed, owner)
            with outsider.connection() as ours:
                delete(ours)
                with Rival(outsider, act) as rival:
                    rival.meet()
                    ours.rollback()
            assert rival.future.exception() is None, deed
            assert (scene.get(action) != action) == (deed not in _PASSING_OVER | _UNCONCERNED), deed
            outsider.run("delete from {ns}workspaces")

    @pytest.mark.parametrize(
        "causes", [[Cause.PUBLISHED] * 3, [Cause.NOT_SENT] * 3, [Cause.NOT_SENT, Cause.PUBLISHED, Cause.NOT_SENT]]
    )
    @each_owner
    def test_a_batch_and_a_deletion_never_lock_each_other_out(
        self, scene: Scene, outsider: Outsider, owner: str, causes: list[Cause]
    ) -> None:
        """P12, P13: both take the queue's rows in one order, however they lie in the table."""
        batch = [scene.action(Status.SUBMITTED) for _ in range(3)]
        token = uuid4()
        for action in reversed(batch):  # the newest version of the last row now lies first
            outsider.run("update {ns}queue set lease_token = :token where action_id = :id", token=token, id=action.id)
        lock = "select 1 from {ns}queue where action_id = :id for update"

        def settle(connection: Connection) -> object:
            return _settle(scene, Transaction.on(connection, scene.app.kernel.names), batch, causes)

        with outsider.connection() as ours:
            outsider.rows(lock, ours, id=batch[1].id)
            with Rival(outsider, settle) as settling, Rival(outsider, _deletion(scene, outsider, owner)) as deletion:
                settling.meet()
                deletion.meet()
                ours.rollback()
        assert settling.future.result() <= {action.id for action in batch}, "settled, or deleted before"
        assert deletion.future.result() == 1
        assert _left(outsider) == {}

    @each_owner
    def test_a_caller_who_cancels_in_any_order_and_a_deletion_never_lock_each_other_out(
        self, scene: Scene, outsider: Outsider, owner: str
    ) -> None:
        """P12, P13: several verbs in one transaction take rows as the caller pleases; the deletion gives way."""
        first, second = scene.action(), scene.action()
        with outsider.connection() as ours:
            scene.app.sync.cancel(second.id, connection=ours)
            with Rival(outsider, _deletion(scene, outsider, owner)) as deletion:
                deletion.meet()
                scene.app.sync.cancel(first.id, connection=ours)
                ours.commit()
        assert deletion.future.result() == 1
        assert _left(outsider) == {}


_PASSING_OVER = {"claim", "settle as published", "settle as unconfirmed", "settle as not sent"}
_UNCONCERNED = {"schedule", "schedule many", "insert by the view", "post again"}


def _prepared(
    scene: Scene, outsider: Outsider, deed: str, owner: str
) -> tuple[Action, Callable[[Connection], Any], Callable[[Connection], int]]:
    """Return an action of owners of its own, what is done to it, and the deletion of one of the owners."""
    scene.workspace, scene.user = make_workspace(scene.app), make_profile(scene.app)
    (status, reason), act = DEEDS[deed]
    action = scene.action(status, reason, idempotency_key="old", payload={"thing_id": str(scene.workspace)})
    return action, lambda connection: act(scene, outsider, action, connection), _deletion(scene, outsider, owner)


def _deletion(scene: Scene, outsider: Outsider, owner: str) -> Callable[[Connection], int]:
    owner_id: UUID = scene.workspace if owner == "workspace" else scene.user
    return lambda connection: outsider.run(f"delete from {{ns}}{owner}s where id = :id", connection, id=owner_id)


def _left(outsider: Outsider) -> dict[str, object]:
    """Return what is left in the tables that the owner's deletion empties."""
    contents = outsider.contents()
    return {table: contents[table] for table in OURS if contents[table]}
