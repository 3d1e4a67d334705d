"""Is what was asked, and what is history, ever changed?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate.domain.states import Reason, Status
from postdate.testing.conformance.outsider import Refusal

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene


class FrozenCases:
    """`actions` and `action_events` are written once."""

    def test_an_actions_row_is_never_updated(self, scene: Scene, outsider: Outsider) -> None:
        """P31, P96: "`publish_at` is never edited" is a fact of the schema, for every column and in every state."""
        for status, reason in ((Status.QUEUED, None), (Status.SUBMITTED, None), (Status.FAILED, Reason.REJECTED)):
            scene.action(status, reason)
        before = outsider.contents()
        with outsider.connection() as connection:
            found = connection.execute(outsider.sql("select * from {ns}actions")).keys()
            columns = [name for name in found if name != "thing_id"]  # generated: nobody can write it
        for name in columns:
            with pytest.raises(Refusal, match="never edited"):
                outsider.run(f"update {{ns}}actions set {name} = {name}")
        assert outsider.contents() == before

    def test_an_insert_never_replaces_an_actions_row(self, scene: Scene, outsider: Outsider) -> None:
        """P96: an upsert is an edit."""
        action = scene.action()
        before = outsider.contents()
        row: Values = {
            "id": action.id,
            "user_id": scene.user,
            "action_type": "publish_post",
            "payload": {},
            "publish_at": action.publish_at + timedelta(days=1),
            "created_at": action.created_at,
        }
        names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        insert = f"insert into {{ns}}actions ({names}) values ({marks})"
        upserts = [f"{insert} on conflict (id) do update set publish_at = excluded.publish_at", insert]
        if outsider.is_sqlite:
            upserts += [insert.replace("insert", "insert or replace", 1), insert.replace("insert", "replace", 1)]
        for upsert in upserts:
            with pytest.raises(Refusal):
                outsider.run(upsert, **row)
        assert outsider.contents() == before

    def test_history_is_append_only(self, scene: Scene, outsider: Outsider) -> None:
        """Who did what, when: no line is ever rewritten."""
        action = scene.action(Status.FAILED, Reason.UNCONFIRMED)
        scene.app.sync.dismiss(action.id, actor="ana", note="looked")
        before = outsider.contents()
        for name in ("action_id", "workspace_id", "at", "cause", "actor", "detail"):
            with pytest.raises(Refusal, match="append-only"):
                outsider.run(f"update {{ns}}action_events set {name} = {name}")
        if outsider.is_sqlite:
            ((first,),) = outsider.rows("select min(id) from {ns}action_events")
            line: Values = {"id": first, "action_id": action.id, "at": 0, "cause": "forged", "actor": "eve"}
            names, marks = ", ".join(line), ", ".join(f":{name}" for name in line)
            with pytest.raises(Refusal):
                outsider.run(f"insert or replace into {{ns}}action_events ({names}) values ({marks})", **line)
        assert outsider.contents() == before

    def test_the_history_tells_the_life_of_an_action(self, scene: Scene) -> None:
        """Every revert, failure, retry and verdict, in order, with its actor; a plain success is its outcome."""
        action = scene.action(Status.FAILED, Reason.UNCONFIRMED)
        scene.app.sync.retry(action.id, actor="ana", note="again")
        scene.tick()
        told = scene.app.sync.history(action.id)
        assert [(event.cause, event.actor) for event in told] == [
            ("schedule", "test"),
            ("unconfirmed", "engine"),
            ("retry", "ana"),
            ("published", "engine"),
        ]
        assert [event.at for event in told] == sorted(event.at for event in told)
        assert told[1].detail["error"] == told[2].detail["error"] == action.last_error
        assert told[2].detail["note"] == "again"
        assert told[3].detail == {"provider_id": "provider-1", "attempt": 2}
