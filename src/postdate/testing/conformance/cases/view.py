"""Can other programs read, insert and cancel through the view, and do nothing else?"""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from postdate.domain.action import Action, Intent
from postdate.domain.states import Cause, Reason, Status
from postdate.store.schema import SYSTEM_PROFILE
from postdate.store.types import Instant, Json
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.factories import STATES
from postdate.testing.moves import make_move
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

THING = {"thing_id": "post-1", "text": "Olá"}
INWARD = {"fingerprint", "paused", "tz_source", "zone_policy"}
"""What no column of the view tells."""
COLUMNS = sorted(
    ({field.name for field in fields(Action)} - {"intent"} | {field.name for field in fields(Intent)} | {"thing_id"})
    - INWARD
)
SOME_STATES = [(Status.QUEUED, None), (Status.SUBMITTED, None), (Status.FAILED, Reason.REJECTED)]


class ViewCases:
    """`scheduled_actions`."""

    def test_the_view_has_the_columns_that_a_reader_of_one_table_would_expect(self, outsider: Outsider) -> None:
        """P11-P23: one for each field of an action."""
        with outsider.connection() as connection:
            found = connection.execute(outsider.sql("select * from {ns}scheduled_actions")).keys()
        assert sorted(found) == COLUMNS

    def test_the_view_shows_what_the_verb_answers(self, scene: Scene, outsider: Outsider) -> None:
        """P17-P23: in every state, every column."""
        for status, reason in STATES:
            action = scene.action(
                status,
                reason,
                at="2027-03-09T10:00",
                tz="Europe/Lisbon",
                target="instagram",
                payload={**THING, "thing_id": f"{status} {reason}"},
                occurrence="1",
                expires_at="2028-01-01T00:00Z",
                overlap_key=f"{status} {reason}",
            )
            told = {name: getattr(action, name) for name in COLUMNS if hasattr(action, name)}
            assert action.intent is not None
            intent = {
                field.name: getattr(action.intent, field.name) for field in fields(Intent) if field.name not in INWARD
            }
            assert _as_read(scene, outsider, action.id) == {**told, **intent}
            if status.active:
                scene.app.sync.cancel(action.id)
                make_move(scene.app, action, Cause.PUBLISHED)

    def test_a_bare_insert_schedules(self, scene: Scene, outsider: Outsider) -> None:
        """P11-P20: an id of its own or of the caller's, and what the columns say; it fires like any other."""
        bare: Values = {
            "user_id": scene.user,
            "workspace_id": scene.workspace,
            "action_type": POST,
            "target_key": "instagram",
            "payload": THING,
            "publish_at": scene.clock.now(),
        }
        outsider.insert(**bare)
        (without,) = scene.app.sync.list()
        mine = uuid4()
        outsider.insert(id=mine, **{**bare, "target_key": "mastodon"})
        with_id = scene.app.sync.get(mine)
        assert without.id.version == 7
        for made, target in ((without, "instagram"), (with_id, "mastodon")):
            assert (made.user_id, made.workspace_id, made.action_type) == (scene.user, scene.workspace, POST)
            assert (made.target_key, made.payload, made.publish_at) == (target, THING, scene.clock.now())
            assert (made.status, made.attempt_count, made.occurrence, made.origin) == (Status.QUEUED, 0, "", "api")
            assert made.created_at == made.updated_at
            assert [event.cause for event in scene.app.sync.history(made.id)] == ["schedule"]
        assert scene.tick().due_count == 2
        assert {ctx.action.id for ctx in scene.runs} == {without.id, mine}
        assert scene.get(without).status is Status.PUBLISHED

    def test_an_insert_without_an_owner_belongs_to_the_system(self, scene: Scene, outsider: Outsider) -> None:
        """P12, P13: what no person asked for."""
        outsider.insert(action_type=POST, payload={}, publish_at=scene.clock.now())
        (made,) = scene.app.sync.list()
        assert (made.user_id, made.workspace_id) == (SYSTEM_PROFILE, None)

    def test_ids_of_bare_inserts_rise_with_time(self, scene: Scene, outsider: Outsider) -> None:
        """P11: version 7 carries its millisecond, as the row's own `created_at` says it."""
        for _ in range(3):
            outsider.insert(action_type=POST, payload={}, publish_at=scene.clock.now())
        for made in scene.app.sync.list():
            assert abs((made.id.int >> 80) - made.created_at.timestamp() * 1000) < 100

    def test_an_update_cancels_what_is_queued(self, scene: Scene, outsider: Outsider) -> None:
        """P30, P68: any number of rows; the history says that it was done by SQL."""
        actions = [scene.action(), scene.action(), scene.action(Status.SUBMITTED)]
        kept = scene.action(workspace=None)
        outsider.run(
            "update {ns}scheduled_actions set status = 'cancelled' where status = 'queued' and workspace_id = :id",
            id=scene.workspace,
        )
        assert [scene.get(action).status for action in actions] == ["cancelled", "cancelled", "submitted"]
        assert scene.get(kept) == kept
        cancelled = scene.get(actions[0])
        assert (cancelled.reason, cancelled.attempt_count) == (Reason.USER, 0)
        assert cancelled.finished_at is not None
        event = scene.app.sync.history(actions[0].id)[-1]
        assert (event.cause, event.actor[:3], event.detail) == ("cancel", "sql", {"reason": "user"})
        assert event.at == cancelled.finished_at

    def test_an_update_past_queued_finds_no_row_and_is_no_error(self, scene: Scene, outsider: Outsider) -> None:
        """P68, P-T8: in every state."""
        for status, reason in STATES:
            if status is not Status.QUEUED:
                action = scene.action(status, reason)
                before = outsider.contents()
                touched = outsider.update(action.id, status="cancelled")
                assert outsider.contents() == before, (status, reason)
                assert touched == 0 or outsider.is_sqlite, "SQLite counts rows that its trigger left alone"

    @pytest.mark.parametrize(("status", "reason"), SOME_STATES)
    def test_every_edit_of_every_column_is_refused(
        self, scene: Scene, outsider: Outsider, status: Status, reason: Reason | None
    ) -> None:
        """P31, P96: with a reason, alone and beside a cancellation; nothing changes."""
        action = scene.action(
            status,
            reason,
            payload=THING,
            at="2027-03-09T10:00",
            tz="Europe/Lisbon",
            expires_at="2028-01-01T00:00Z",
        )
        before = outsider.contents()
        for name, edited in _edits(scene).items():
            for beside in ({}, {"status": "cancelled"}):
                with pytest.raises(Refusal, match="never edited"):
                    outsider.update(action.id, **{name: edited}, **beside)
            if name not in {"id", "user_id", "action_type", "payload", "occurrence", "publish_at", "origin"}:
                continue
            with pytest.raises(Refusal, match="never edited"):
                outsider.update(action.id, **{name: None})
        for target in {*Status, "done", "", None} - {status, Status.CANCELLED}:
            with pytest.raises(Refusal, match="only `set status = 'cancelled'`"):
                outsider.update(action.id, status=target and str(target))
        assert outsider.contents() == before

    @pytest.mark.parametrize(("status", "reason"), SOME_STATES)
    def test_a_row_is_never_deleted(
        self, scene: Scene, outsider: Outsider, status: Status, reason: Reason | None
    ) -> None:
        """P47 as superseded: what was scheduled stays as history."""
        scene.action(status, reason)
        before = outsider.contents()
        with pytest.raises(Refusal, match="never deleted"):
            outsider.run("delete from {ns}scheduled_actions")
        assert outsider.contents() == before

    def test_an_insert_that_breaks_a_rule_is_refused_with_a_reason(self, scene: Scene, outsider: Outsider) -> None:
        """P18 and the rules that the verbs have; of a refused row nothing stays in any table."""
        taken = scene.action(Status.SUBMITTED)
        before = outsider.contents()
        for reason, broken in broken_rows(scene, taken.id):
            good = {"action_type": POST, "payload": {"thing_id": "new"}, "publish_at": scene.clock.now()}
            with pytest.raises(Refusal, match=reason):
                outsider.insert(**{**good, **broken})
            assert outsider.contents() == before, broken


def _as_read(scene: Scene, outsider: Outsider, action_id: UUID) -> dict[str, Any]:
    """Return a row of the view as our own types read it."""
    with outsider.connection() as connection:
        statement = outsider.sql("select * from {ns}scheduled_actions where id = :id")
        (row,) = connection.execute(statement, outsider.written({"id": action_id})).mappings()
    if not outsider.is_sqlite:
        return dict(row)
    with scene.app.kernel.transaction(None) as tx:
        dialect, tables = tx.connection.dialect, (tx.tables.actions, tx.tables.outcomes)
        types: Values = {column.name: column.type for table in tables for column in table.c}
    instants = dict.fromkeys(("next_attempt_at", "updated_at"), Instant())
    types |= instants
    kinds = {name: types[name] for name in row if isinstance(types.get(name), Instant | Json)}
    readers = {name: kind.result_processor(dialect, None) for name, kind in kinds.items()}
    values = {name: read(row[name]) for name, read in readers.items() if read is not None}
    ids = {name: UUID(row[name]) for name in ("id", "user_id", "workspace_id")}
    return {**row, **values, **ids}


def _edits(scene: Scene) -> dict[str, Any]:
    """Return another value for each column but the status."""
    then = scene.clock.now() + timedelta(days=2)
    texts = dict.fromkeys(
        ("target_key", "thing_id", "occurrence", "last_error", "provider_id", "tz", "origin_id"), "else"
    )
    instants = dict.fromkeys(
        ("publish_at", "next_attempt_at", "submitted_at", "finished_at", "created_at", "updated_at", "expires_at"), then
    )
    others = {
        "id": uuid4(),
        "user_id": SYSTEM_PROFILE,
        "workspace_id": uuid4(),
        "replaces_id": uuid4(),
        "action_type": "reminder",
        "payload": {"thing_id": "post-2"},
        "reason": "skipped",
        "attempt_count": 3,
        "wall_time": "2027-03-09T11:00",
        "gap": "reject",
        "fold": "second",
        "origin": "drip",
        "overlap_key": "weekly",
        "traceparent": "00-1",
    }
    edits = texts | instants | others
    assert sorted([*edits, "status"]) == COLUMNS
    return edits


def broken_rows(scene: Scene, taken: UUID) -> list[tuple[str, dict[str, Any]]]:
    """Return what makes a good row bad, each with words of the reason."""
    now = scene.clock.now()
    by_engine: list[dict[str, Any]] = [
        {"reason": "user"},
        {"last_error": "x"},
        {"attempt_count": 1},
        {"next_attempt_at": now},
        {"provider_id": "x"},
        {"submitted_at": now},
        {"finished_at": now},
        {"updated_at": now},
    ]
    return [
        *(("starts as queued", {"status": str(status)}) for status in Status if status is not Status.QUEUED),
        *(("by the engine alone", broken) for broken in by_engine),
        ("no (such )?profile", {"user_id": uuid4()}),
        ("no (such )?workspace", {"workspace_id": uuid4()}),
        ("pkey", {"id": taken}),
        ("action_type", {"action_type": None}),
        ("type_text", {"action_type": ""}),
        ("type_text", {"action_type": "x" * 101}),
        ("target_text", {"target_key": "x" * 256}),
        ("thing", {"payload": {"thing_id": ""}}),
        ("thing_text", {"payload": {"thing_id": "x" * 256}}),
        ("thing_string", {"payload": {"thing_id": 7}}),
        ("thing_string", {"payload": {"thing_id": None}}),
        ("thing", {"thing_id": "another"}),
        ("occurrence_text", {"occurrence": "x" * 256}),
        ("overlap_text", {"overlap_key": ""}),
        ("payload", {"payload": None}),
        ("payload_object", {"payload": "[]"}),
        ("payload_object", {"payload": "null"}),
        ("payload_size", {"payload": {"x": "x" * 262_144}}),
        ("(?i)json", {"payload": "{"}),
        ("publish_at", {"publish_at": None}),
        ("expires_at_range", {"expires_at": now - timedelta(microseconds=1)}),
        ("intent", {"wall_time": "2027-03-09T12:00"}),
        ("gap", {"wall_time": "2027-03-09T12:00", "tz": "UTC", "gap": "x", "fold": "first"}),
        ("fold", {"wall_time": "2027-03-09T12:00", "tz": "UTC", "gap": "forward", "fold": "x"}),
        ("origin", {"origin": "elsewhere"}),
    ]
