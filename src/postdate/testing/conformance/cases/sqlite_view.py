"""Do SQLite's conflict clauses open a way past the view's rules?

`INSERT OR REPLACE` on a view lends its clause to the statements of the view's trigger.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.states import Reason, Status
from postdate.testing.conformance.cases.view import broken_rows
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

CLAUSES = ["or replace", "or ignore", "or fail", "or abort", "or rollback"]


class SqliteViewCases:
    """The view on SQLite."""

    @pytest.mark.parametrize("clause", CLAUSES)
    def test_an_insert_never_overwrites(self, scene: Scene, outsider: Outsider, clause: str) -> None:
        """P26, P64, P96: neither by id nor by key nor by overlap key; the row that is there stays as it is."""
        for status in (Status.PUBLISHED, Status.SUBMITTED, Status.QUEUED):
            self._stays(scene, outsider, clause, status)

    @staticmethod
    def _stays(scene: Scene, outsider: Outsider, clause: str, status: Status) -> None:
        thing = {"thing_id": status.value}
        there = scene.action(status, payload=thing, overlap_key=status.value)
        before = outsider.contents()
        new: Values = {"action_type": POST, "payload": {}, "publish_at": scene.clock.now() + timedelta(days=1)}
        colliding: list[Values] = [{"id": there.id}, {"payload": thing}, {"id": there.id, "payload": thing}]
        if status is not Status.PUBLISHED:
            colliding.append({"overlap_key": status.value})
        for each in colliding:
            with pytest.raises(Refusal):
                _insert(outsider, clause, **{**new, **each})
            assert outsider.contents() == before, each

    @pytest.mark.parametrize("clause", CLAUSES)
    def test_an_insert_that_breaks_a_rule_leaves_nothing(self, scene: Scene, outsider: Outsider, clause: str) -> None:
        """P18: whatever the clause says about conflicts, no half of a row stays."""
        taken = scene.action(Status.SUBMITTED)
        before = outsider.contents()
        for reason, broken in broken_rows(scene, taken.id):
            good = {"action_type": POST, "payload": {"thing_id": "new"}, "publish_at": scene.clock.now()}
            with pytest.raises(Refusal, match=f"{reason}|`or ignore` hides" if clause == "or ignore" else reason):
                _insert(outsider, clause, **{**good, **broken})
            assert outsider.contents() == before, broken

    @pytest.mark.parametrize("clause", CLAUSES)
    def test_an_insert_that_breaks_no_rule_gets_in(self, scene: Scene, outsider: Outsider, clause: str) -> None:
        """P11: the clause has nothing to decide."""
        for thing in ("1", "2"):
            _insert(outsider, clause, action_type=POST, payload={"thing_id": thing}, publish_at=scene.clock.now())
        assert scene.tick().due_count == 2

    @pytest.mark.parametrize("clause", CLAUSES)
    def test_an_update_cancels_or_changes_nothing(self, scene: Scene, outsider: Outsider, clause: str) -> None:
        """P30, P96."""
        ended = scene.action(Status.FAILED, Reason.REJECTED)
        queued = scene.action()
        for change in ("publish_at = 0", "status = 'published'", "status = null"):
            before = outsider.contents()
            with pytest.raises(Refusal):
                outsider.run(f"update {clause} {{ns}}scheduled_actions set {change}")
            assert outsider.contents() == before
        outsider.run(f"update {clause} {{ns}}scheduled_actions set status = 'cancelled' where status = 'queued'")
        assert (scene.get(queued).status, scene.get(ended)) == (Status.CANCELLED, ended)

    def test_an_upsert_is_refused(self, scene: Scene, outsider: Outsider) -> None:
        """P96."""
        before = outsider.contents()
        row: Values = {"action_type": POST, "payload": {}, "publish_at": scene.clock.now()}
        for then in ("nothing", "(id) do nothing", "(id) do update set publish_at = 0"):
            conflict = f"on conflict do {then}" if then == "nothing" else f"on conflict {then}"
            with pytest.raises(Refusal):
                outsider.run(
                    "insert into {ns}scheduled_actions (action_type, payload, publish_at) "
                    f"values (:action_type, :payload, :publish_at) {conflict}",
                    **row,
                )
        assert outsider.contents() == before

    def test_a_replaced_owner_keeps_its_actions(self, scene: Scene, outsider: Outsider) -> None:
        """P12, P13: `INSERT OR REPLACE` of a workspace is how hosts save one; it is no deletion."""
        action = scene.action()
        outsider.run("insert or replace into {ns}workspaces (id, name) values (:id, 'renamed')", id=scene.workspace)
        outsider.run("insert or replace into {ns}profiles (id, tz) values (:id, 'Asia/Tokyo')", id=scene.user)
        assert scene.get(action) == action

    @pytest.mark.parametrize("column", ["target_key", "occurrence", "overlap_key", "origin_id", "traceparent"])
    def test_text_in_another_encoding_is_read_as_far_as_it_can_be(
        self, scene: Scene, outsider: Outsider, column: str
    ) -> None:
        """P43, P77: one odd row never holds up the others."""
        outsider.run(
            f"insert into {{ns}}scheduled_actions (action_type, payload, publish_at, {column}) "
            "values (:type, :payload, :at, cast(x'4de47263' as text))",
            type=POST,
            payload={},
            at=scene.clock.now(),
        )
        other = scene.action(at=scene.clock.now())
        assert scene.tick().due_count == 2
        assert scene.get(other).status is Status.PUBLISHED
        (odd,) = [action for action in scene.app.sync.list() if action.id != other.id]
        assert getattr(odd, column) == "M\ufffdrc"


def _insert(outsider: Outsider, clause: str, **values: Any) -> None:
    names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    outsider.run(f"insert {clause} into {{ns}}scheduled_actions ({names}) values ({marks})", **values)
