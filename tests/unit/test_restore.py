"""Is this database an old one that was put back?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from postdate.domain.restore import MISSED, gone_back, identity, is_another, why_hold

NOON = datetime(2027, 3, 9, 12, tzinfo=UTC)
A_DAY, A_MOMENT = timedelta(days=1), timedelta(microseconds=1)
HERE, THERE = identity(1, "00000001", 16384), identity(1, "00000001", 16385)


def why(
    gap: timedelta | None,
    *,
    last_identity: str | None = HERE,
    now_identity: str | None = HERE,
    seen: datetime | None = None,
    restore_hold: timedelta = A_DAY,
) -> str | None:
    return why_hold(
        now=NOON,
        last_tick_at=None if gap is None else NOON - gap,
        last_identity=last_identity,
        identity=now_identity,
        seen=seen,
        restore_hold=restore_hold,
    )


def test_an_engine_that_begins_holds_where_nobody_ticked_for_longer_than_allowed() -> None:
    assert why(A_DAY) is None
    assert "2027-03-08" in str(why(A_DAY + A_MOMENT))
    assert why(None) is None, "a database that is new"
    assert why(-A_DAY) is None, "and one whose clock was ahead"
    assert why(timedelta(days=400), restore_hold=timedelta(0)) is None


def test_or_where_it_is_another_database_that_nobody_ticked_in_for_some_minutes() -> None:
    assert why(MISSED, last_identity=THERE) is None, "that is a planned move"
    assert "another database" in str(why(MISSED + A_MOMENT, last_identity=THERE))
    assert why(MISSED + A_MOMENT, last_identity=None) is None
    assert why(MISSED + A_MOMENT, last_identity=THERE, now_identity=None) is None
    assert why(MISSED + A_MOMENT, last_identity=THERE, restore_hold=timedelta(0)) is None


def test_an_engine_that_runs_holds_where_the_database_has_lost_what_it_wrote() -> None:
    assert why(timedelta(days=9), seen=NOON - timedelta(days=9)) is None, "it was suspended, the database was not"
    assert why(timedelta(days=9), seen=NOON - timedelta(days=9) + MISSED) is None, "a standby lacks a little"
    assert "lost" in str(why(timedelta(days=9), seen=NOON - timedelta(days=9) + MISSED + A_MOMENT))
    assert "lost" in str(why(None, seen=NOON))
    assert gone_back(NOON, NOON + MISSED + A_MOMENT)
    assert not gone_back(NOON, None)


@pytest.mark.parametrize(
    ("one", "other", "another"),
    [
        (HERE, HERE, False),
        (HERE, THERE, True),
        (identity(1, "1", 5), identity(1, "2", 5), True),
        (identity(None, "1", 5), identity(1, "1", 5), False),
        (identity(None, "1", 5), identity(1, "1", 6), True),
    ],
)
def test_databases_are_told_apart_by_what_both_of_them_tell(one: str, other: str, another: bool) -> None:
    assert is_another(one, other) is another
