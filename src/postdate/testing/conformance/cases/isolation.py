"""Does anything run twice for a caller whose snapshot is older than what went out meanwhile?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postdate.domain.states import Cause, Reason, Status
from postdate.errors import PostdateError, SiblingRunning
from postdate.testing.moves import claim, make_move
from postdate.testing.scene import POST
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from postdate.domain.action import Action
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

LEVELS = ["REPEATABLE READ", "SERIALIZABLE"]
GONE = [Cause.PUBLISHED, Cause.UNCONFIRMED]
THING = {"thing_id": "post-1"}


def by_verb(scene: Scene, _outsider: Outsider, connection: Connection, thing: Values) -> object:
    """Schedule the thing."""
    return scene.action(payload=thing, at=scene.clock.now(), connection=connection)


def by_batch(scene: Scene, _outsider: Outsider, connection: Connection, thing: Values) -> object:
    """Schedule the thing among others."""
    rows = [NewAction(action_type=POST, payload=payload, at=scene.clock.now()) for payload in ({}, thing, {})]
    made = scene.app.sync.schedule_many(rows, connection=connection)
    assert not any(isinstance(one, PostdateError) for one in made)
    return made


def by_view(scene: Scene, outsider: Outsider, connection: Connection, thing: Values) -> object:
    """Insert the thing as another program would."""
    at = scene.clock.now()
    return outsider.insert("scheduled_actions", connection, action_type=POST, payload=thing, publish_at=at)


class IsolationCases:
    """Callers above READ COMMITTED pass the guard's trigger; the claim looks once more."""

    @pytest.fixture(params=LEVELS)
    def old_snapshot(self, request: pytest.FixtureRequest, outsider: Outsider) -> Iterator[Connection]:
        """A transaction of another program that will see the database as it was when it first looked."""
        with outsider.connection() as connection:
            yield connection.execution_options(isolation_level=request.param)

    @pytest.mark.parametrize("insert", [by_verb, by_batch, by_view], ids=["verb", "batch", "view"])
    def test_a_duplicate_that_passed_the_guard_is_cancelled_by_the_claim_and_not_run(
        self,
        scene: Scene,
        outsider: Outsider,
        old_snapshot: Connection,
        insert: Callable[[Scene, Outsider, Connection, Values], object],
    ) -> None:
        """P64, P66, P91: nothing runs under a published or unconfirmed sibling."""
        for gone in GONE:
            thing = {"thing_id": gone.value}
            sibling = scene.action(Status.SUBMITTED, payload=thing)
            _look(old_snapshot, outsider)
            assert make_move(scene.app, sibling, gone)
            insert(scene, outsider, old_snapshot, thing)
            old_snapshot.commit()
            (passed,) = scene.app.sync.list(status="queued", thing=gone.value)
            scene.tick()
            assert passed.id not in {ctx.action.id for ctx in scene.runs}
            barred = scene.get(passed)
            assert (barred.status, barred.reason) == (Status.CANCELLED, Reason.DUPLICATE)
            assert barred.attempt_count == 0, "the attempt is given back"
            event = scene.app.sync.history(passed.id)[-1]
            assert (event.cause, event.actor) == ("duplicate", "engine")
            assert scene.get(sibling).status is (Status.PUBLISHED if gone is Cause.PUBLISHED else Status.FAILED)

    def test_a_retry_that_passed_the_guard_is_not_run_either(
        self, scene: Scene, outsider: Outsider, old_snapshot: Connection
    ) -> None:
        """P66."""
        for gone in GONE:
            thing = {"thing_id": gone.value}
            failed = scene.action(Status.FAILED, Reason.REJECTED, payload=thing)
            sibling = scene.action(Status.SUBMITTED, payload=thing)
            _look(old_snapshot, outsider)
            assert make_move(scene.app, sibling, gone)
            scene.app.sync.retry(failed.id, connection=old_snapshot)
            old_snapshot.commit()
            scene.tick()
            assert scene.runs == []
            assert scene.get(failed).reason is Reason.DUPLICATE

    def test_a_confirmation_cancels_what_passed_the_guard(
        self, scene: Scene, outsider: Outsider, old_snapshot: Connection
    ) -> None:
        """It did go out: what waits to go out again is a duplicate, and the history says who found out."""
        doubtful, passed = self._passed(scene, outsider, old_snapshot)
        scene.app.sync.confirm(doubtful.id, actor="ana")
        assert (scene.get(passed).status, scene.get(passed).reason) == (Status.CANCELLED, Reason.DUPLICATE)
        assert scene.app.sync.history(passed.id)[-1].actor == "ana"

    def test_a_confirmation_waits_for_a_sibling_that_runs(
        self, scene: Scene, outsider: Outsider, old_snapshot: Connection
    ) -> None:
        """What runs cannot be taken back; the person is told to look again."""
        doubtful, passed = self._passed(scene, outsider, old_snapshot)
        assert claim(scene.app, passed), "by a claim that does not look at the guard"
        before = outsider.contents()
        with pytest.raises(SiblingRunning) as refused:
            scene.app.sync.confirm(doubtful.id)
        assert (refused.value.sibling, refused.value.permanent) == (passed.id, False)
        assert outsider.contents() == before

    def test_our_own_transactions_are_read_committed_whatever_the_database_says(
        self, scene: Scene, outsider: Outsider
    ) -> None:
        """The claim's second look needs the newest state."""
        with outsider.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            name = connection.scalar(text("select quote_ident(current_database())"))
            connection.execute(text(f"alter database {name} set default_transaction_isolation = 'serializable'"))
        scene.await_(scene.app.close())
        ask = text("select current_setting('transaction_isolation')")
        with scene.app.kernel.transaction(None) as tx:
            assert tx.execute(ask).scalar() == "read committed"
        assert scene.await_(scene.app.kernel.work(lambda tx: tx.execute(ask).scalar())) == "read committed"

    @staticmethod
    def _passed(scene: Scene, outsider: Outsider, old_snapshot: Connection) -> tuple[Action, Action]:
        """Return an unconfirmed action, and a queued one that got in beside it."""
        sibling = scene.action(Status.SUBMITTED, payload=THING)
        _look(old_snapshot, outsider)
        assert make_move(scene.app, sibling, Cause.UNCONFIRMED)
        by_verb(scene, outsider, old_snapshot, THING)
        old_snapshot.commit()
        (passed,) = scene.app.sync.list(status="queued")
        return scene.get(sibling), passed


def _look(connection: Connection, outsider: Outsider) -> None:
    assert outsider.rows("select 1 from {ns}queue", connection), "the snapshot begins while the sibling runs"
