"""Does the view on PostgreSQL answer as a table would, and wake the engines?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from postdate.domain.states import Reason, Status
from postdate.testing.conformance.cases.view import COLUMNS
from postdate.testing.conformance.outsider import Refusal, sqlstate
from postdate.testing.scene import POST
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

THING = {"thing_id": "post-1"}
A_WHILE = 20.0


class PostgresViewCases:
    """The view on PostgreSQL."""

    def test_returning_tells_the_whole_row(self, scene: Scene, outsider: Outsider) -> None:
        """P11, P18, P20, P23: as PostgREST asks for it; the same that a reader finds afterwards."""
        insert = "insert into {ns}scheduled_actions (action_type, payload, publish_at) values (:type, :payload, :at)"
        with outsider.engine.begin() as connection:
            values = {"type": POST, "payload": json.dumps(THING), "at": scene.clock.now()}
            statement = outsider.sql(f"{insert} returning *")
            (inserted,) = connection.execute(statement, values).mappings()
        assert inserted == _row(outsider, inserted["id"])
        assert (inserted["status"], inserted["attempt_count"], inserted["thing_id"]) == ("queued", 0, "post-1")
        assert sorted(map(str, inserted)) == COLUMNS
        with outsider.engine.begin() as connection:
            update = "update {ns}scheduled_actions set status = 'cancelled' where id = :id returning *"
            (cancelled,) = connection.execute(outsider.sql(update), {"id": inserted["id"]}).mappings()
            assert connection.execute(outsider.sql(update), {"id": inserted["id"]}).all() == []
        assert cancelled == _row(outsider, inserted["id"])
        assert (cancelled["status"], cancelled["reason"]) == ("cancelled", "user")

    @pytest.mark.parametrize(
        "conflict", ["do nothing", "(id) do nothing", "(id) do update set publish_at = excluded.publish_at"]
    )
    def test_an_upsert_is_refused(self, scene: Scene, outsider: Outsider, conflict: str) -> None:
        """P96."""
        action = scene.action()
        before = outsider.contents()
        insert = "insert into {ns}scheduled_actions (id, action_type, payload, publish_at) "
        with pytest.raises(Refusal):
            outsider.run(
                f"{insert} values (:id, :type, '{{}}', :at) on conflict {conflict}",
                id=action.id,
                type=POST,
                at=scene.clock.now(),
            )
        assert outsider.contents() == before

    def test_many_rows_are_inserted_from_a_query_or_all_refused(self, scene: Scene, outsider: Outsider) -> None:
        """P26: one statement stands or falls; a savepoint keeps the transaction."""
        insert = (
            "insert into {ns}scheduled_actions (action_type, payload, publish_at) "
            "select :type, jsonb_build_object('thing_id', n % :things), :at from generate_series(1, 10) n"
        )
        text_things = insert.replace("n % :things", "(n % :things)::text")
        values: Values = {"type": POST, "at": scene.clock.now()}
        with pytest.raises(Refusal):
            outsider.run(text_things, things=9, **values)
        assert scene.app.sync.list() == []
        assert outsider.run(text_things, things=10, **values) == 10
        assert len({action.id for action in scene.app.sync.list()}) == 10

    def test_a_refusal_names_its_constraint_and_code(self, scene: Scene, outsider: Outsider) -> None:
        """Programs tell refusals apart by SQLSTATE and constraint, as with any table."""
        action = scene.action(payload=THING, overlap_key="nightly")
        good: Values = {"action_type": POST, "payload": {}, "publish_at": scene.clock.now()}
        refusals: list[tuple[str, str, Callable[[], object]]] = [
            ("23505", "queue_key", lambda: outsider.insert(**{**good, "payload": THING})),
            ("23505", "queue_overlap", lambda: outsider.insert(**good, overlap_key="nightly")),
            ("23505", "queue_pkey", lambda: outsider.insert(**good, id=action.id)),
            ("23503", "actions_user", lambda: outsider.insert(**good, user_id=uuid4())),
            ("23503", "actions_workspace", lambda: outsider.insert(**good, workspace_id=uuid4())),
            ("23514", "scheduled_actions_insert", lambda: outsider.insert(**good, status="failed")),
            ("23514", "actions_target_text", lambda: outsider.insert(**good, target_key="")),
            ("23514", "scheduled_actions_update", lambda: outsider.update(action.id, overlap_key=None)),
            ("23514", "scheduled_actions_delete", lambda: outsider.run("delete from {ns}scheduled_actions")),
        ]
        for code, constraint, attempt in refusals:
            with pytest.raises(Refusal) as refused:
                attempt()
            told = getattr(refused.value.orig, "diag", None)
            assert (sqlstate(refused.value), str(told and told.constraint_name)[-len(constraint) :]) == (
                code,
                constraint,
            )

    def test_what_is_due_soon_wakes_the_engines_and_what_is_not_does_not(
        self, scene: Scene, outsider: Outsider
    ) -> None:
        """The tick finds everything; the alarm needs to hear of what is due before the next one."""
        soon, far = timedelta(seconds=59), timedelta(seconds=61)
        failed = scene.action(Status.FAILED, Reason.REJECTED)
        queued = scene.action(at=scene.clock.now() + timedelta(days=1))

        def schedule(wait: timedelta) -> object:
            return scene.app.sync.schedule(POST, {}, at=scene.clock.now() + wait)

        def schedule_many(*waits: timedelta) -> object:
            rows = [NewAction(action_type=POST, payload={}, at=scene.clock.now() + wait) for wait in waits]
            return scene.app.sync.schedule_many(rows)

        def by_view(wait: timedelta) -> object:
            return outsider.insert(action_type=POST, payload={}, publish_at=_database_time(outsider) + wait)

        deeds: list[tuple[bool, Callable[[], object]]] = [
            (True, lambda: schedule(soon)),
            (False, lambda: schedule(far)),
            (True, lambda: schedule_many(far, soon, far)),
            (False, lambda: schedule_many(far, far)),
            (True, lambda: by_view(soon)),
            (False, lambda: by_view(far + timedelta(seconds=10))),
            (True, lambda: scene.app.sync.retry(failed.id)),
            (True, lambda: scene.app.sync.reschedule(queued.id, at=scene.clock.now())),
            (False, scene.app.sync.list),
        ]
        for number, (wakes, deed) in enumerate(deeds):
            assert (_notifications(scene, outsider, deed) > 0) is wakes, number

    def test_what_is_rolled_back_wakes_nobody(self, scene: Scene, outsider: Outsider) -> None:
        """There is nothing to do."""

        def take_back() -> None:
            with outsider.connection() as connection:
                scene.action(at=scene.clock.now(), connection=connection)
                connection.rollback()

        assert _notifications(scene, outsider, take_back) == 0


def _row(outsider: Outsider, action_id: object) -> Any:
    with outsider.connection() as connection:
        statement = outsider.sql("select * from {ns}scheduled_actions where id = :id")
        return connection.execute(statement, {"id": action_id}).mappings().one()


def _database_time(outsider: Outsider) -> datetime:
    ((now,),) = outsider.rows("select clock_timestamp()")
    time: datetime = now.astimezone(UTC)
    return time


def _notifications(scene: Scene, outsider: Outsider, deed: Callable[[], object]) -> int:
    """Return how often the channel of the alarm was called while something was done."""
    import psycopg  # noqa: PLC0415 - an extra

    channel = scene.app.kernel.names.channel
    url = outsider.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f"listen {channel}".encode())
        deed()
        with outsider.engine.begin() as connection:
            connection.execute(text("select pg_notify(:channel, 'the end')"), {"channel": channel})
        for heard, notification in enumerate(listening.notifies(timeout=A_WHILE)):
            if notification.payload == "the end":
                return heard
    pytest.fail("the end was never heard")
