"""When is a rule looked at next whose occurrences must not overlap, where none of them is near or none is left?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from postdate.domain.expand import expand
from postdate.domain.rule import RecurringRule, nominal_instant

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
WINDOW = timedelta(days=14)

YEARLY = RecurringRule(
    id=UUID(int=1),
    workspace_id=None,
    user_id=UUID(int=2),
    action_type="post",
    target_key=None,
    payload_template={},
    kind="rrule",
    rrule="FREQ=YEARLY",
    starts_wall="2026-03-01T09:00",
    starts_at=datetime(2026, 3, 1, 9, tzinfo=UTC),
    tz="UTC",
    gap="forward",
    fold="first",
    misfire="once",
    grace=timedelta(hours=1),
    overlap="skip",
    last_materialized_at=NOON,
    look_at=NOON,
    created_at=NOON,
)


def test_the_next_is_made_when_it_comes_within_the_window_and_not_before() -> None:
    look = expand(YEARLY, now=NOON, window=WINDOW)
    assert (list(look.wanted), look.ends) == ([], False)
    assert look.look_at == datetime(2027, 2, 15, 9, tzinfo=UTC)
    then = expand(replace(YEARLY, last_materialized_at=look.upto), now=look.look_at, window=WINDOW)
    assert list(then.wanted) == [datetime(2027, 3, 1, 9, tzinfo=UTC)]


@pytest.mark.parametrize("text", ["FREQ=YEARLY;COUNT=1", "FREQ=YEARLY;UNTIL=20261231T000000Z"])
def test_where_none_is_left_the_rule_ends(text: str) -> None:
    look = expand(replace(YEARLY, rrule=text), now=NOON, window=WINDOW)
    assert (list(look.wanted), list(look.missed), look.ends) == ([], [], True)


def test_an_interval_has_its_holidays_in_utc_for_it_has_no_zone() -> None:
    rule = replace(YEARLY, kind="every", rrule=str(12 * 3600 * 10**6), starts_at=NOON, tz=None)
    found = list(rule.occurrences(NOON, NOON + timedelta(days=2), holidays=["2026-03-09"]))
    assert found == [NOON + timedelta(days=1.5), NOON + timedelta(days=2)]


@pytest.mark.parametrize("odd", ["", "weekly", "2026-03-09", "2026-03-09T09:00"])
def test_an_occurrence_that_names_no_instant_is_none_of_a_rules(odd: str) -> None:
    """Callers name occurrences as they like."""
    assert nominal_instant(odd) is None
    assert nominal_instant("2026-03-08T12:00:00Z") == NOON
