"""May the iterable that is scheduled do as it likes?"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING

import pytest

from postdate import Action, AlreadyScheduled, Context, NewAction, Postdate, Settings
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.clock import ManualClock


async def test_an_iterable_may_call_verbs_itself(database_url: str, clock: ManualClock) -> None:
    """SQLite has one writer: it would wait for itself until the busy time-out, here at once."""
    app = Postdate(database_url, settings=Settings(database_timeout=timedelta(seconds=1)), clock=clock)

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    def found_while_scheduling() -> Iterator[NewAction]:
        for n in range(3):
            parent = app.sync.schedule("act", {"n": n}, at=NOON)
            yield NewAction(action_type="act", payload={"parent": str(parent.id)}, at=NOON)

    made = app.sync.schedule_many(found_while_scheduling())
    assert [isinstance(one, Action) for one in made] == [True] * 3
    await app.close()


async def test_a_member_of_an_enumeration_of_texts_counts_as_its_text(app: Postdate) -> None:
    class Network(str, Enum):  # noqa: UP042 - as many programs have them
        INSTAGRAM = "instagram"

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    made = await app.schedule(
        "act", {"thing_id": "post-1"}, target=Network.INSTAGRAM, overlap_key=Network.INSTAGRAM, at=NOON
    )
    found = await app.get(made.id)
    assert (made.target_key, found.target_key, found.overlap_key) == ("instagram", "instagram", "instagram")
    with pytest.raises(AlreadyScheduled):
        await app.schedule("act", {"thing_id": "post-1"}, target="instagram", at=NOON)
