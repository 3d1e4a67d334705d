"""Does a rule that the host has put on our tables refuse the one row that breaks it, and no other?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postdate import Action, Context, Invalid, NewAction, Postdate
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

ON_SQLITE = """
create trigger no_fax before insert on {actions} when new.target_key = 'fax'
begin select raise(abort, 'nobody has a fax'); end
"""
ON_POSTGRESQL = "alter table {actions} add constraint nobody_has_a_fax check (target_key <> 'fax')"


@pytest.fixture
def without_fax(app: Postdate) -> Iterator[Postdate]:
    @app.action("post")
    async def post(ctx: Context, payload: dict[str, object]) -> None: ...

    with app.kernel.transaction(None) as tx:
        rule = ON_SQLITE if tx.is_sqlite else ON_POSTGRESQL
        tx.execute(text(rule.format(actions=tx.tables.actions.fullname)))
    yield app
    with app.kernel.transaction(None) as tx:
        if not tx.is_sqlite:
            tx.execute(text(f"alter table {tx.tables.actions.fullname} drop constraint nobody_has_a_fax"))


def to(target: str) -> NewAction:
    return NewAction(action_type="post", payload={"thing_id": "post-1"}, at=NOON, target=target)


async def test_of_many_the_one_that_breaks_it_is_told_and_the_others_are_scheduled(without_fax: Postdate) -> None:
    """P55: one clash drops one row, never the batch."""
    first, refused, again, last = await without_fax.schedule_many([to("mail"), to("fax"), to("mail"), to("sms")])
    assert isinstance(refused, Invalid)
    assert "is refused by the database" in str(refused)
    assert "fax" in str(refused)
    assert isinstance(first, Action)
    assert not isinstance(again, Action)
    assert isinstance(last, Action)
    assert {each.target_key for each in await without_fax.list()} == {"mail", "sms"}
    with without_fax.kernel.transaction(None, read_only=True) as tx:
        assert len(tx.execute(tx.tables.queue.select()).all()) == 2, "nothing is left of what was refused"


async def test_alone_it_is_refused_by_an_error_of_ours(without_fax: Postdate) -> None:
    with pytest.raises(Invalid, match="is refused by the database"):
        await without_fax.schedule("post", {"thing_id": "post-1"}, at=NOON, target="fax")
    assert await without_fax.list() == []
