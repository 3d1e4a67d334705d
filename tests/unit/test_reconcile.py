"""Does the plan insert, replace, withdraw and keep what it should, and nothing else?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from postdate import Desired, Insert, Invalid, Keep, Kept, Parent, Replace, Withdraw
from postdate.domain.action import SEPARATOR
from postdate.domain.reconcile import BY_HAND, YOUNG, History, Standing, Step, Wish, plan
from postdate.sources import Sources, SqlSource

NOON = datetime(2027, 3, 9, 12, tzinfo=UTC)
A_SECOND = timedelta(seconds=1)
HERE, THERE = uuid4(), uuid4()
THING = "post-1"
KEY = SEPARATOR.join(("publish_post", THING, "instagram", ""))
WISH = Wish(key=KEY, fingerprint="as it was")


def standing(**changed: object) -> Standing:
    """Return an action that the source wants and that is old enough to go."""
    ours = Standing(
        action_id=uuid4(),
        key=KEY,
        origin="reconciler",
        source="posts",
        workspace_id=HERE,
        fingerprint=WISH.fingerprint,
        created_at=NOON - YOUNG - A_SECOND,
        claimed=False,
    )
    return replace(ours, **changed)  # type: ignore[arg-type]


def history(*active: Standing, terminal: set[str] | None = None, parents: dict[str, Parent] | None = None) -> History:
    return History(
        source="posts",
        workspace_id=HERE,
        active={one.key: one for one in active},
        terminal=terminal or frozenset(),
        parents=parents or {},
    )


def decided(wishes: list[Wish], known: History) -> Step:
    (step,) = plan(wishes, known, now=NOON)
    return step


def test_what_is_missing_is_inserted() -> None:
    """P-T10, first half."""
    assert decided([WISH], history()) == Insert(key=KEY)


def test_what_is_there_as_the_source_says_stays() -> None:
    """P-T10."""
    there = standing()
    assert decided([WISH], history(there)) == Keep(key=KEY, reason=Kept.UNCHANGED, action_id=there.action_id)


@pytest.mark.parametrize("created_at", [NOON, NOON - timedelta(days=1)])
def test_what_its_source_says_otherwise_now_is_replaced_however_young_it_is(created_at: datetime) -> None:
    """P46, P-T10: the two minutes are for what nobody wants, not for what is wanted at another time."""
    there = standing(fingerprint="otherwise", created_at=created_at)
    assert decided([WISH], history(there)) == Replace(key=KEY, action_id=there.action_id)


def test_what_has_ended_is_never_inserted_again() -> None:
    """P50, P-T10, second half."""
    assert decided([WISH], history(terminal={KEY})) == Keep(key=KEY, reason=Kept.TERMINAL)


def test_what_has_ended_is_looked_at_first() -> None:
    """P52: a person scheduled it anew after cancelling it, and drift does not touch that."""
    there = standing(fingerprint="otherwise")
    kept = Keep(key=KEY, reason=Kept.TERMINAL, action_id=there.action_id)
    assert decided([WISH], history(there, terminal={KEY})) == kept


@pytest.mark.parametrize(
    ("age", "stays"),
    [
        (timedelta(seconds=119), True),
        (YOUNG - timedelta(microseconds=1), True),
        (YOUNG, False),
        (timedelta(seconds=121), False),
        (-timedelta(hours=1), True),
    ],
)
def test_what_nobody_wants_goes_once_it_is_two_minutes_old(age: timedelta, stays: bool) -> None:
    """P53, P-T11; and where the clock went back it stays."""
    there = standing(created_at=NOON - age)
    gone, kept = (
        Withdraw(key=KEY, action_id=there.action_id),
        Keep(key=KEY, reason=Kept.YOUNG, action_id=there.action_id),
    )
    assert decided([], history(there)) == (kept if stays else gone)


def test_what_stands_under_a_thing_that_is_done_stays() -> None:
    """P54, P-T11: a person retried it."""
    there = standing()
    kept = Keep(key=KEY, reason=Kept.PARENT_FINISHED, action_id=there.action_id)
    gone = Withdraw(key=KEY, action_id=there.action_id)
    assert decided([], history(there, parents={THING: Parent.FINISHED})) == kept
    assert decided([], history(there, parents={THING: Parent.OPEN})) == gone
    assert decided([], history(there, parents={"post-2": Parent.FINISHED})) == gone


def test_what_a_person_posted_once_more_stays_as_long_as_its_thing_is_there() -> None:
    there = standing(fingerprint=None)
    kept = Keep(key=KEY, reason=Kept.POSTED_AGAIN, action_id=there.action_id)
    assert decided([], history(there, parents={THING: Parent.OPEN})) == kept
    assert decided([], history(there)) == Withdraw(key=KEY, action_id=there.action_id)


@pytest.mark.parametrize("wishes", [[], [WISH]])
def test_what_is_claimed_is_left_alone(wishes: list[Wish]) -> None:
    there = standing(claimed=True, fingerprint="otherwise")
    assert decided(wishes, history(there)) == Keep(key=KEY, reason=Kept.CLAIMED, action_id=there.action_id)


@pytest.mark.parametrize(
    "others",
    [
        {"source": "drafts"},
        {"workspace_id": THERE},
        {"workspace_id": None},
        {"origin": "recurring", "source": None},
        {"origin": BY_HAND, "source": None, "workspace_id": THERE},
        {"origin": "reconciler", "source": None},
    ],
)
def test_what_others_want_is_neither_replaced_nor_withdrawn(others: dict[str, object]) -> None:
    there = standing(fingerprint="otherwise", **others)
    assert decided([WISH], history(there)) == Keep(key=KEY, reason=Kept.ANOTHERS, action_id=there.action_id)
    assert plan([], history(there), now=NOON) == []


def test_what_was_scheduled_by_hand_is_taken_over_once_the_source_wants_it() -> None:
    """P56: the source is the truth for what it speaks of. What it never spoke of is left alone."""
    by_hand = standing(origin=BY_HAND, source=None, fingerprint=None)
    assert decided([WISH], history(by_hand)) == Replace(key=KEY, action_id=by_hand.action_id)
    assert plan([], history(by_hand), now=NOON) == []


def test_what_is_said_twice_counts_once() -> None:
    again = Wish(key=KEY, fingerprint="otherwise")
    assert plan([WISH, again], history(), now=NOON) == [Insert(key=KEY), Keep(key=KEY, reason=Kept.REPEATED)]


KEYS = [SEPARATOR.join(("publish_post", f"post-{n}", "", "")) for n in range(3)]
WISHES = st.lists(st.builds(Wish, key=st.sampled_from(KEYS), fingerprint=st.sampled_from(["a", "b"])), max_size=4)
STANDING = st.builds(
    Standing,
    action_id=st.uuids(),
    key=st.sampled_from(KEYS),
    origin=st.sampled_from(["reconciler", BY_HAND, "recurring"]),
    source=st.sampled_from(["posts", "drafts", None]),
    workspace_id=st.sampled_from([HERE, THERE, None]),
    fingerprint=st.sampled_from(["a", "b", None]),
    created_at=st.sampled_from([NOON, NOON - YOUNG]),
    claimed=st.booleans(),
)


@given(
    wishes=WISHES,
    active=st.lists(STANDING, max_size=4),
    terminal=st.sets(st.sampled_from(KEYS)),
    parents=st.dictionaries(st.sampled_from(["post-0", "post-1", "post-2"]), st.sampled_from(Parent)),
)
def test_whatever_is_known_the_plan_keeps_its_gates(
    wishes: list[Wish], active: list[Standing], terminal: set[str], parents: dict[str, Parent]
) -> None:
    known = history(*active, terminal=terminal, parents=parents)
    steps = plan(wishes, known, now=NOON)
    assert [step.key for step in steps[: len(wishes)]] == [wish.key for wish in wishes], "a step for each wish"
    changes = [step for step in steps if not isinstance(step, Keep)]
    assert len({step.key for step in changes}) == len(changes), "at most one change for a key"
    for step in changes:
        there = known.active.get(step.key)
        if isinstance(step, Insert):
            assert there is None
            assert step.key not in terminal
            continue
        assert there is not None
        assert step.action_id == there.action_id
        assert not there.claimed
        if isinstance(step, Withdraw):
            assert there.source == "posts"
            assert there.workspace_id == HERE
            assert NOON - there.created_at >= YOUNG
            assert parents.get(there.thing_id) is not Parent.FINISHED
            assert step.key not in {wish.key for wish in wishes}
        else:
            assert step.key not in terminal
    done = {step.key for step in changes}
    settled = history(
        *(one for one in known.active.values() if one.key not in done),
        *(standing(key=wish.key, fingerprint=wish.fingerprint) for wish in reversed(wishes) if wish.key in done),
        terminal=terminal,
        parents=parents,
    )
    assert [step for step in plan(wishes, settled, now=NOON) if not isinstance(step, Keep)] == [], "and then it is done"


# --- what a source says --------------------------------------------------------------------------------


class Post(BaseModel):
    thing_id: str
    text: str = "Hello"


def desired(**changed: object) -> Desired:
    wanted = Desired(action_type="publish_post", payload={"thing_id": THING}, at=NOON, target="instagram")
    return replace(wanted, **changed)  # type: ignore[arg-type]


def test_the_key_is_that_of_the_action_that_comes_of_it() -> None:
    assert desired().key == KEY
    assert desired(payload=Post(thing_id=THING), occurrence="2027").key == KEY + "2027"
    assert desired(target=None).key == SEPARATOR.join(("publish_post", THING, "", ""))


@pytest.mark.parametrize(
    "changed",
    [
        {"payload": {}},
        {"payload": {"thing_id": 1}},
        {"payload": {"thing_id": f"a{SEPARATOR}b"}},
        {"payload": "text"},
        {"payload": None},
        {"action_type": ""},
        {"target": ""},
        {"occurrence": "x" * 300},
    ],
    ids=str,
)
def test_what_has_no_key_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        _ = desired(**changed).key


@pytest.mark.parametrize(
    "changed",
    [
        {"at": NOON + A_SECOND},
        {"at": "2027-03-09T12:00", "tz": "Europe/Lisbon"},
        {"tz": "Europe/Lisbon"},
        {"gap": "reject"},
        {"fold": "second"},
        {"user": uuid4()},
        {"expires_at": NOON},
        {"payload": {"thing_id": THING, "text": "Hi"}},
    ],
    ids=", ".join,
)
def test_whatever_else_it_says_makes_another_fingerprint(changed: dict[str, object]) -> None:
    assert desired(**changed).fingerprint() != desired().fingerprint()


def test_the_same_said_in_other_ways_has_the_same_fingerprint() -> None:
    somebody = uuid4()
    lisbon = NOON.astimezone(timezone(timedelta(hours=1)))
    one = desired(payload={"thing_id": THING, "tags": {"a": 1, "b": 2}}, user=somebody)
    other = desired(payload={"tags": {"b": 2, "a": 1}, "thing_id": THING}, user=str(somebody), at=lisbon)
    assert one.fingerprint() == other.fingerprint()
    assert (
        desired(payload=Post(thing_id=THING)).fingerprint()
        == desired(payload={"text": "Hello", "thing_id": THING}).fingerprint()
    )


@pytest.mark.parametrize("odd", [object(), {1: object()}], ids=["an object", "within"])
def test_what_is_not_json_is_refused(odd: object) -> None:
    with pytest.raises(Invalid, match="must be JSON"):
        desired(payload={"thing_id": THING, "odd": odd}).fingerprint()


# --- registering ---------------------------------------------------------------------------------------

PARENTS = "select id as thing_id, done as finished from posts where id in :thing_ids"


def test_sql_may_ask_for_the_workspace_and_for_things_alone() -> None:
    whole = r"select 1::int as at, '\:no' as action_type, 'a' as thing_id"
    assert SqlSource(desired_sql=f"{whole} where workspace = :workspace", parents_sql=PARENTS).by_workspace
    assert not SqlSource(desired_sql=whole, parents_sql=PARENTS).by_workspace
    with pytest.raises(Invalid, match="no parameter but :workspace"):
        SqlSource(desired_sql=f"{whole} where id = :id", parents_sql=PARENTS)
    with pytest.raises(Invalid, match="as its one parameter"):
        SqlSource(desired_sql=whole, parents_sql="select 1")


def test_a_source_is_registered_once_by_a_name_and_with_a_time() -> None:
    sources, sql = Sources(), SqlSource(desired_sql="select 1", parents_sql=PARENTS)
    sources.add("posts", sql, workspaces=iter([HERE]))
    assert sources["posts"].workspaces == (HERE,)
    with pytest.raises(Invalid, match="registered already"):
        sources.add("posts", sql)
    with pytest.raises(Invalid, match="longer than nothing"):
        sources.add("drafts", sql, timeout=timedelta(0))
    with pytest.raises(Invalid, match="must be uuids"):
        sources.add("drafts", sql, workspaces=[str(HERE)])  # type: ignore[list-item]
    with pytest.raises(Invalid, match="control"):
        sources.add("a\nb", sql)
    with pytest.raises(Invalid, match=r"not registered \(known: posts\)"):
        _ = sources["drafts"]


def test_sql_that_asks_for_no_workspace_is_asked_once() -> None:
    sources = Sources()
    sources.add("all", SqlSource(desired_sql="select 1", parents_sql=PARENTS))
    sources.add("each", SqlSource(desired_sql="select :workspace", parents_sql=PARENTS))
    assert sources["all"].workspaces == (None,)
    assert sources["each"].workspaces is None
    assert [one.name for one in sources] == ["all", "each"]
