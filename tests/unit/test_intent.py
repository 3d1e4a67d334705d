"""What follows where a wall time means another instant than the one its action has?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postdate.domain.action import Intent
from postdate.domain.intent import Doubt, Intended, check_zone_policy, shift
from postdate.domain.walltime import resolve
from postdate.errors import Invalid

if TYPE_CHECKING:
    from postdate.domain.intent import Shift, ZonePolicy

LISBON, TOKYO = "Europe/Lisbon", "Asia/Tokyo"
NINE = "2027-07-06T09:00"
NOW = datetime(2027, 7, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOBODY = UUID(int=0)


def intended(
    publish_at: datetime, *, wall_time: str = NINE, expires_at: datetime | None = None, **intent: Any
) -> Intended:
    meant = Intent(**{"wall_time": wall_time, "tz": LISBON, "gap": "forward", "fold": "first", **intent})
    return Intended(
        action_id=NOBODY,
        action_type="mail",
        workspace_id=None,
        user_id=NOBODY,
        publish_at=publish_at,
        expires_at=expires_at,
        intent=meant,
    )


def shifted(what: Intended, *, tz: str = LISBON, policy: ZonePolicy = "follow", now: datetime = NOW) -> Shift:
    found = shift(what, tz=tz, policy=policy, now=now)
    assert found is not None
    return found


def test_what_means_the_instant_it_has_has_not_shifted() -> None:
    assert shift(intended(resolve(NINE, LISBON)), tz=LISBON, policy="follow", now=NOW) is None
    assert shift(intended(resolve(NINE, LISBON)), tz="Europe/London", policy="follow", now=NOW) is None


@pytest.mark.parametrize(
    ("policy", "course", "doubt"), [("follow", "follow", None), ("ask", "ask", Doubt.POLICY), ("pin", "pin", None)]
)
def test_the_policy_says_what_becomes_of_it(policy: ZonePolicy, course: str, doubt: Doubt | None) -> None:
    found = shifted(intended(resolve(NINE, LISBON)), tz=TOKYO, policy=policy)
    assert (found.course, found.doubt, found.means) == (course, doubt, resolve(NINE, TOKYO))


def test_nothing_is_followed_to_an_instant_that_is_past_or_is_now() -> None:
    tokyo = resolve(NINE, TOKYO)
    for now, course in ((tokyo - HOUR, "follow"), (tokyo, "ask"), (tokyo + HOUR, "ask")):
        assert shifted(intended(resolve(NINE, LISBON)), tz=TOKYO, now=now).course == course


def test_nothing_is_followed_beyond_its_end() -> None:
    later = resolve(NINE, LISBON)
    for expires_at, doubt in ((later, None), (later - HOUR, Doubt.EXPIRED)):
        assert shifted(intended(resolve(NINE, TOKYO), expires_at=expires_at)).doubt == doubt


@pytest.mark.parametrize(
    ("intent", "tz", "doubt"),
    [
        ({"wall_time": "2028-03-26T01:30", "gap": "reject"}, LISBON, Doubt.GAP),
        ({}, "Mars/Base", Doubt.ZONE),
        ({"wall_time": "nine"}, LISBON, Doubt.WALL_TIME),
        ({"wall_time": "nine", "gap": "reject"}, LISBON, Doubt.WALL_TIME),
    ],
)
def test_what_means_nothing_is_asked_about_and_may_be_pinned(intent: dict[str, Any], tz: str, doubt: Doubt) -> None:
    found = shifted(intended(NOW + HOUR, **intent), tz=tz)
    assert (found.means, found.course, found.doubt) == (None, "ask", doubt)
    assert shifted(intended(NOW + HOUR, **intent), tz=tz, policy="pin").course == "pin"


@pytest.mark.parametrize("value", ["", "Follow", "none", 1, True, ["follow"]])
def test_what_is_no_policy_is_refused(value: object) -> None:
    with pytest.raises(Invalid, match="zone_policy: must be one of follow, ask, pin"):
        check_zone_policy(value)


@given(
    wall=st.datetimes(datetime(2027, 1, 1), datetime(2029, 1, 1)),  # noqa: DTZ001 - wall times
    here=st.sampled_from([LISBON, TOKYO, "America/New_York", "Pacific/Apia"]),
    there=st.sampled_from([LISBON, TOKYO, "America/New_York", "Pacific/Apia"]),
    fold=st.sampled_from(["first", "second"]),
)
def test_whoever_follows_has_arrived(wall: datetime, here: str, there: str, fold: Any) -> None:
    """To follow once is enough: what was followed means the instant it then has."""
    began = intended(resolve(wall, here, fold=fold), wall_time=wall.isoformat(), tz=here, fold=fold)
    found = shift(began, tz=there, policy="follow", now=datetime(2026, 1, 1, tzinfo=UTC))
    if found is None:
        assert resolve(wall, there, fold=fold) == began.publish_at
        return
    assert found.means is not None
    arrived = intended(found.means, wall_time=wall.isoformat(), tz=there, fold=fold)
    assert shift(arrived, tz=there, policy="follow", now=NOW) is None
