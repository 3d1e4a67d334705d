"""Does every instant come back as it was given, and is everything else refused?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from postdate.domain.outcome import Deferred, NotSent
from postdate.domain.states import Status
from postdate.errors import Invalid, InvalidInstant
from postdate.testing.conformance.outsider import Refusal
from postdate.testing.scene import POST

if TYPE_CHECKING:
    from collections.abc import Callable

    from postdate.context import Context
    from postdate.testing.conformance.outsider import Outsider, Values
    from postdate.testing.scene import Scene

LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
NAIVE = datetime(2027, 3, 9, 12)  # noqa: DTZ001 - naive on purpose


class InstantCases:
    """Instants."""

    def test_an_instant_comes_back_to_the_microsecond(self, scene: Scene) -> None:
        """P17, P74, P99: from the first to the last, in every column that holds one."""
        for instant in (FIRST, datetime(1970, 1, 1, tzinfo=UTC), LAST - timedelta(hours=9), LAST):
            made = scene.action(at=instant, expires_at=LAST)
            assert scene.get(made) == made
            assert (made.publish_at, made.expires_at) == (instant, LAST)
            until = None if instant == LAST else instant + timedelta(microseconds=1)
            assert scene.app.sync.list(status="queued", since=instant, until=until) == [made]
            moved = scene.app.sync.reschedule(made.id, at=LAST)
            assert scene.app.sync.list(status="queued") == [moved]
            scene.app.sync.cancel(moved.id)

    def test_the_last_instant_can_be_waited_for(self, scene: Scene) -> None:
        """P17: as when something is due, and as when it is tried again."""
        last = scene.action(at=LAST)
        scene.clock.move_to(LAST - timedelta(days=1))
        assert scene.tick().due_count == 0
        scene.answer = _raising(Deferred(LAST))
        scene.app.sync.post_now(last.id)
        scene.tick()
        (deferred,) = scene.app.sync.list(status="queued")
        assert deferred.next_attempt_at == LAST
        assert scene.tick().due_count == 0

    def test_an_instant_is_utc_however_it_is_told(self, scene: Scene) -> None:
        """P17, P74."""
        told = datetime(2027, 3, 9, 12, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
        for at in (told, told.isoformat(), told.astimezone(UTC).isoformat().replace("+00:00", "Z")):
            made = scene.action(at=at)
            assert made.publish_at == told
            assert scene.get(made).publish_at.tzinfo is UTC

    @pytest.mark.parametrize("naive", [NAIVE, NAIVE.isoformat()])
    def test_a_naive_datetime_is_refused_everywhere(self, scene: Scene, outsider: Outsider, naive: Any) -> None:
        """P95, P98, P100: it names no instant."""
        action, now = scene.action(), scene.clock.now()
        before = outsider.contents()
        calls: list[Any] = [
            lambda: scene.action(at=naive),
            lambda: scene.action(at=now, expires_at=naive),
            lambda: scene.app.sync.reschedule(action.id, at=naive),
            lambda: scene.app.sync.reschedule(action.id, at=now, expires_at=naive),
            lambda: scene.app.sync.list(since=naive),
            lambda: scene.app.sync.list(until=naive),
            lambda: Deferred(naive),
        ]
        for call in calls:
            with pytest.raises(Invalid):
                call()
        assert outsider.contents() == before

    def test_what_is_no_instant_is_refused(self, scene: Scene, outsider: Outsider) -> None:
        """P99, P100: numbers, words, days, and what falls outside the calendar once it is in UTC."""
        before = outsider.contents()
        beyond = FIRST.replace(tzinfo=timezone(timedelta(hours=1)))
        odd: list[Any] = [1_800_000_000, 1.8e9, "", "now", "2027-03-09", beyond, beyond.isoformat()]
        for instant in odd:
            with pytest.raises(Invalid):
                scene.app.sync.schedule(POST, {}, at=instant)
            with pytest.raises(InvalidInstant):
                scene.app.sync.schedule(POST, {}, at=scene.clock.now(), expires_at=instant)
        assert outsider.contents() == before

    def test_waits_in_fractions_are_kept_as_whole_microseconds(self, scene: Scene, outsider: Outsider) -> None:
        """P99: no instant ever becomes a float or a text."""
        action = scene.action(at=scene.clock.now())
        scene.answer = _raising(NotSent("busy", retry_after=100.1234567))
        scene.tick()
        due = scene.get(action).next_attempt_at
        assert due is not None
        assert scene.clock.now() + timedelta(seconds=100) < due
        if outsider.is_sqlite:
            columns = {"queue": ["due_at", "attempt_count"], "actions": ["publish_at", "created_at"]}
            for table, names in columns.items():
                for name in names:
                    assert outsider.rows(f"select typeof({name}) from {{ns}}{table}") == [("integer",)]

    def test_the_schema_refuses_fractions(self, scene: Scene, outsider: Outsider) -> None:
        """P20, P99: attempt counts are whole on both databases, and so are SQLite's instants."""
        scene.action(Status.SUBMITTED)
        scene.action(Status.PUBLISHED)
        before = outsider.contents()
        broken: list[tuple[str, str, Any]] = [("queue", "attempt_count", -1), ("outcomes", "attempt_count", -1)]
        if outsider.is_sqlite:
            broken += [("queue", name, 2.5) for name in ("attempt_count", "due_at", "lease_until", "submitted_at")]
            broken += [("queue", name, "soon") for name in ("attempt_count", "due_at", "lease_until")]
            broken += [("outcomes", name, 2.5) for name in ("attempt_count", "finished_at", "submitted_at")]
        for table, name, value in broken:
            with pytest.raises(Refusal):
                outsider.run(f"update {{ns}}{table} set {name} = :value", value=value)
        if outsider.is_sqlite:
            for name in ("publish_at", "expires_at", "created_at"):
                row: Values = {"action_type": POST, "payload": {}, "publish_at": scene.clock.now(), name: 2.5}
                with pytest.raises(Refusal):
                    outsider.insert(**row)
        assert outsider.contents() == before


def _raising(error: Exception) -> Callable[[Context], object]:
    def answer(_ctx: Context) -> None:
        raise error

    return answer
