"""Does the queue follow what upstream says, as often as it changes its word?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postdate import Kept, NotSent, Reason, Status
from tests.stories.upstream import A_MINUTE, A_SECOND, LATER, SOURCE, TYPE, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from postdate import Action, Context

TWO_MINUTES = timedelta(minutes=2)


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    async with Stage.on(database_url) as stage:
        yield stage


async def test_what_is_approved_again_is_scheduled_again(stage: Stage) -> None:
    """What the engine withdrew does not bar its key (SC24: removed and added again, it fires)."""
    stage.approve("post-1")
    await stage.reconcile()
    stage.unapprove("post-1")
    assert (await stage.reconcile(after=TWO_MINUTES)).withdrawn == 1
    stage.approve("post-1")
    assert (await stage.reconcile(after=A_SECOND)).inserted == 1
    first, again = await stage.all_of("post-1")
    assert (first.reason, again.status, again.replaces_id) == (Reason.ORPHANED, Status.QUEUED, None)
    stage.clock.move_to(LATER)
    await stage.app.tick()
    assert stage.ran == ["post-1"]


async def test_what_is_removed_and_added_within_a_minute_fires_once(stage: Stage) -> None:
    """SC24, at once."""
    stage.approve("post-1")
    await stage.reconcile()
    stage.unapprove("post-1")
    await stage.reconcile(after=A_SECOND)
    stage.approve("post-1")
    await stage.reconcile(after=A_SECOND)
    stage.clock.move_to(LATER)
    await stage.app.tick()
    assert stage.ran == ["post-1"]
    assert len(await stage.all_of("post-1")) == 1


async def test_drift_replaces_with_lineage_and_goes_on_to_be_followed(stage: Stage) -> None:
    """P46 as superseded: nothing is edited."""
    stage.approve("post-1")
    await stage.reconcile()
    for hours in (2, 3):
        stage.approve("post-1", LATER + timedelta(hours=hours))
        assert (await stage.reconcile(after=A_SECOND)).replaced == 1
        assert (await stage.reconcile(after=A_SECOND)).kept == {Kept.UNCHANGED: 1}
    first, second, third = await stage.all_of("post-1")
    assert [first.reason, second.reason, third.status] == [Reason.DRIFTED, Reason.DRIFTED, Status.QUEUED]
    assert [second.replaces_id, third.replaces_id] == [first.id, second.id]
    assert third.publish_at == LATER + timedelta(hours=3)
    (asked, *_) = await stage.app.history(third.id)
    assert (asked.cause, asked.actor, asked.detail) == (
        "schedule",
        f"reconciler:{SOURCE}",
        {"replaces": str(second.id)},
    )
    stage.clock.move_to(LATER + timedelta(hours=4))
    await stage.app.tick()
    assert stage.ran == ["post-1"]


async def test_a_persons_move_holds_until_upstream_says_something_else(stage: Stage) -> None:
    stage.approve("post-1")
    await stage.reconcile()
    moved = await stage.app.reschedule((await stage.only("post-1")).id, at=LATER + A_MINUTE, actor="ana")
    assert (await stage.reconcile(after=A_MINUTE)).kept == {Kept.UNCHANGED: 1}
    assert (await stage.only("post-1")).id == moved.id
    stage.approve("post-1", LATER + timedelta(hours=5))
    assert (await stage.reconcile(after=A_MINUTE)).replaced == 1
    assert (await stage.only("post-1")).publish_at == LATER + timedelta(hours=5)


async def test_another_text_is_followed_as_another_time_is(stage: Stage) -> None:
    wanted = stage.approve("post-1")
    await stage.reconcile()
    stage.upstream.wanted[stage.workspace] = [
        type(wanted)(action_type=TYPE, payload={"thing_id": "post-1", "text": "new"}, at=wanted.at)
    ]
    assert (await stage.reconcile()).replaced == 1
    assert (await stage.only("post-1")).payload["text"] == "new"


async def test_what_was_tried_in_vain_follows_upstream_to_another_time(stage: Stage) -> None:
    def busy(_ctx: Context) -> object:
        raise NotSent("busy")

    stage.answer = busy
    stage.approve("post-1", stage.clock.now())
    await stage.reconcile()
    await stage.app.tick()
    stage.approve("post-1", LATER)
    assert (await stage.reconcile(after=A_SECOND)).replaced == 1
    found: Action = await stage.only("post-1")
    assert (found.publish_at, found.attempt_count) == (LATER, 0)
