"""Do the settings of a caller's PostgreSQL session change anything?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postdate.testing.conformance.cases.instants import FIRST, LAST
from postdate.testing.scene import POST
from postdate.verbs import NewAction

if TYPE_CHECKING:
    from postdate.testing.conformance.outsider import Outsider
    from postdate.testing.scene import Scene

SETTINGS = [
    "timezone = 'Asia/Shanghai'",
    "timezone = 'America/Los_Angeles'",
    "timezone = 'Africa/Monrovia'",
    "datestyle = 'SQL, DMY'",
    "search_path = ''",
    "standard_conforming_strings = on",
    "extra_float_digits = 0",
    "enable_indexscan = off",
    "client_min_messages = debug1",
]


class SessionCases:
    """`connection=` of a session that is set up in the host's way."""

    def test_instants_are_the_same_in_every_session(self, scene: Scene, outsider: Outsider) -> None:
        """P17, P74: also the last hours of year 9999, which have no local time in Asia, and the first of year 1."""
        then = datetime(2027, 3, 9, 12, 30, 0, 1, tzinfo=UTC)
        for setting in SETTINGS:
            with outsider.connection() as connection:
                connection.execute(text(f"set local {setting}"))
                for at in (FIRST, then, LAST):
                    made = scene.action(at=at, expires_at=LAST, connection=connection)
                    assert scene.app.sync.get(made.id, connection=connection) == made, setting
                    assert made.publish_at == at
                    assert scene.app.sync.list(since=at, thing=made.thing_id, connection=connection) == [made]
                    moved = scene.app.sync.reschedule(made.id, at=LAST, connection=connection)
                    assert moved.publish_at == LAST
                    assert scene.app.sync.cancel(moved.id, connection=connection).finished_at == scene.clock.now()
                    assert scene.app.sync.history(moved.id, connection=connection)[0].at == scene.clock.now()
                rows = [NewAction(action_type=POST, payload={"n": 0.1 + 0.2}, at=at) for at in (FIRST, LAST)]
                many = scene.app.sync.schedule_many(rows, connection=connection)
                connection.commit()
            assert scene.app.sync.list(status="queued") == many, setting
            outsider.run("update {ns}scheduled_actions set status = 'cancelled' where status = 'queued'")

    def test_a_deletion_leaves_the_session_its_own_patience(self, scene: Scene, outsider: Outsider) -> None:
        """P12: the trigger waits in its own way, and puts `lock_timeout` back."""
        scene.action()
        with outsider.connection() as connection:
            connection.execute(text("set lock_timeout = '7s'"))
            outsider.run("delete from {ns}workspaces", connection)
            assert connection.scalar(text("show lock_timeout")) == "7s"
            connection.commit()
            assert connection.scalar(text("show lock_timeout")) == "7s"

    def test_a_deletion_waits_no_longer_than_the_session_is_told_to(self, scene: Scene, outsider: Outsider) -> None:
        """P12: else a host that asked for an error would hang."""
        action = scene.action()
        with outsider.connection() as ours, outsider.connection() as theirs:
            outsider.rows("select 1 from {ns}queue for update", ours)
            theirs.execute(text("set lock_timeout = '60ms'"))
            with pytest.raises(Exception, match="lock timeout"):
                outsider.run("delete from {ns}workspaces", theirs)
            theirs.rollback()
        assert scene.get(action) == action
        assert scene.tick(after=timedelta(hours=1)).due_count == 1
