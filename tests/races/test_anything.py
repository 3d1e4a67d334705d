"""Does a thing go out at most once whatever several hands do with it at the same moment?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from postdate import NotSent
from tests.races.racing import race
from tests.races.stage import NOON, POST, PUBLISHED, REJECTED, UNCONFIRMED, Stage, post, things

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from postdate import Action
    from postdate.domain.action import Claimed
    from postdate.store.transaction import Transaction
    from tests.races.racing import Contender, Meeting

ROUNDS = 60
HANDS = 3
ENDS = (PUBLISHED, REJECTED, UNCONFIRMED, NotSent("no route"))


@dataclass(frozen=True)
class Subject:
    """One thing: an action that is queued, running or in doubt, and a sibling that failed before."""

    thing: str
    action: Action
    failed: Action
    run: Sequence[Claimed]


Deed: TypeAlias = "Callable[[Stage, Transaction, Subject, Random], object]"

DEEDS: list[Deed] = [
    lambda stage, tx, it, _: stage.app.sync.cancel(it.action.id, connection=tx.connection),
    lambda stage, tx, it, _: stage.app.sync.reschedule(
        it.action.id, at=NOON + timedelta(days=1), connection=tx.connection
    ),
    lambda stage, tx, it, _: stage.app.sync.post_now(it.action.id, connection=tx.connection),
    lambda stage, tx, it, _: stage.app.sync.retry(it.action.id, connection=tx.connection),
    lambda stage, tx, it, _: stage.app.sync.retry(it.failed.id, connection=tx.connection),
    lambda stage, tx, it, _: stage.app.sync.confirm(it.action.id, connection=tx.connection),
    lambda stage, tx, it, _: stage.app.sync.dismiss(it.action.id, connection=tx.connection),
    lambda stage, tx, it, _: stage.app.sync.schedule_many([post(it.thing)], connection=tx.connection),
    lambda stage, tx, it, rng: stage.settle(tx, it.run, rng.choice(ENDS)),
    lambda stage, tx, _, rng: stage.settle(tx, stage.claim(tx, slots=2), rng.choice(ENDS)),
]


def subjects(stage: Stage) -> list[Subject]:
    """Return a third of each kind."""
    names = things(ROUNDS)
    failed = stage.ended(names, REJECTED)
    running, doubtful, queued = names[::3], names[1::3], names[2::3]
    runs = stage.running(running)
    first = [one.action for one in runs] + stage.ended(doubtful, UNCONFIRMED) + stage.schedule(queued)
    by_thing = {str(action.payload["thing_id"]): action for action in first}
    run_of = {str(one.action.payload["thing_id"]): [one] for one in runs}
    return [
        Subject(thing, by_thing[thing], old, run_of.get(thing, [])) for thing, old in zip(names, failed, strict=True)
    ]


def test_whatever_three_hands_do_at_once_each_thing_goes_out_at_most_once(stage: Stage) -> None:
    """P26, P34, P64: and no two of them deadlock, or meet an error that is none of ours."""
    prepared = subjects(stage)

    def acting(hand: int) -> Contender:
        def act(number: int, meeting: Meeting) -> object:
            rng = Random(f"{number} {hand}")
            deed = rng.choice(DEEDS)
            holding = number % HANDS == hand
            return stage.meet(meeting, lambda tx: deed(stage, tx, prepared[number], rng), holding=holding)

        return act

    race(stage.url, ROUNDS, *map(acting, range(HANDS)))
    stage.assert_sound()
    stage.publish_all()
    stage.assert_sound()
    assert len(stage.app.sync.list(action_type=POST, status="queued")) == 0
