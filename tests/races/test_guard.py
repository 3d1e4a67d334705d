"""Can a thing go out twice when its publication races a newcomer?

P26, P64, P66.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postdate import PostdateError, Reason
from tests.races.newcomers import NEIGHBOURS, NEWCOMERS, REFUSED, Kind, bulk, coming, view
from tests.races.racing import race
from tests.races.stage import NOON, POST, PUBLISHED, UNCONFIRMED, Stage, things

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate import Action
    from tests.races.racing import Contender, Meeting

ROUNDS = 100

LOOKING_BEFORE = """
drop trigger queue_guard on postdate.queue;
create function postdate.early_guard() returns trigger language plpgsql as $$
begin
  perform from postdate.outcomes where key = new.key and (status = 'published' or reason = 'unconfirmed');
  if found then
    raise unique_violation;
  end if;
  return new;
end $$;
create trigger queue_guard before insert on postdate.queue for each row execute function postdate.early_guard();
"""


def settling(stage: Stage, names: Sequence[str]) -> Contender:
    """Claim all of them now; in each round settle one, which went out or may have."""
    running = stage.running(names)

    def settle(number: int, meeting: Meeting) -> None:
        outcome = (PUBLISHED, UNCONFIRMED)[number // 2 % 2]
        assert stage.meet(meeting, lambda tx: stage.settle(tx, [running[number]], outcome), holding=number % 2 == 0)

    return settle


@pytest.mark.parametrize("kind", NEWCOMERS)
def test_nothing_gets_in_beside_what_is_going_out(stage: Stage, kind: Kind) -> None:
    names = things(ROUNDS)
    come = coming(stage, names, kind)
    for _, came in race(stage.url, ROUNDS, settling(stage, names), come):
        assert isinstance(came, REFUSED)
    stage.assert_sound()
    assert stage.publish_all() == (ROUNDS * 2 * NEIGHBOURS if kind is bulk else 0)


def test_a_guard_that_looked_before_the_unique_index_would_let_newcomers_in(postgres_stage: Stage) -> None:
    stage, rounds = postgres_stage, 8
    with stage.app.kernel.database.sync_engine.begin() as connection:
        connection.execute(text(LOOKING_BEFORE))
    names = things(rounds)
    results = race(stage.url, rounds, settling(stage, names), coming(stage, names, view))
    assert [came for _, came in results[::2]] == [1] * (rounds // 2), "every newcomer of a held round"


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_what_slips_past_the_guard_in_an_old_snapshot_is_never_run(postgres_stage: Stage, level: str) -> None:
    """P66, P91: the claim looks once more."""
    stage, rounds = postgres_stage, 50
    names = things(rounds)
    engine = stage.app.kernel.database.sync_engine.execution_options(isolation_level=level)

    def come(number: int, meeting: Meeting) -> Action:
        with engine.begin() as connection:
            connection.execute(text("select from postdate.outcomes limit 1"))  # the snapshot is taken here
            meeting.start()
            return stage.app.sync.schedule(
                POST, {"thing_id": names[number]}, at=NOON, target="instagram", connection=connection
            )

    results = race(stage.url, rounds, settling(stage, names), come)
    slipped = [came for _, came in results if not isinstance(came, PostdateError)]
    assert len(slipped) >= rounds // 2, "every newcomer of a held round"
    assert stage.publish_all() == 0
    assert {stage.app.sync.get(action.id).reason for action in slipped} == {Reason.DUPLICATE}
    stage.assert_sound()
