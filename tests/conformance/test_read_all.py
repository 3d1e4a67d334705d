"""Do many rows that come back in one step say what they say one by one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, select

from postdate import Context, Postdate
from postdate.clock import ManualClock
from postdate.store.read_all import read_all
from postdate.testing.conformance.cases.payloads import KEPT
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from sqlalchemy import Select

    from postdate.store.transaction import Transaction


def _by_target(tx: Transaction) -> Select[Any]:
    """Columns of every type; its order is neither that of a column that is read nor that of any index."""
    a = tx.tables.actions
    columns = (a.c.id, a.c.payload, a.c.workspace_id, a.c.publish_at, a.c.expires_at, a.c.wall_time, a.c.occurrence)
    asked = select(*columns, a.c.payload.label("again"), (a.c.id == a.c.user_id).label("is_own"))
    return asked.where(a.c.action_type == bindparam("name")).order_by(a.c.target_key.desc())


def test_they_are_the_same_in_the_same_order(database_url: str) -> None:
    app = Postdate(database_url, clock=ManualClock(NOON))

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    asked: list[dict[str, Any]] = [{}, {"expires_at": NOON}, {"at": "2026-03-08T12:00", "tz": "Europe/Lisbon"}]
    targets = [str(number * 3 % 7) for number in range(7)]
    for number, target in enumerate(targets):
        payload = {"values": KEPT, "target": target}
        app.sync.schedule("act", payload, **{"at": NOON, "target": target, **asked[number % 3]})
    with app.kernel.transaction(None) as tx:
        one_by_one = tx.execute(_by_target(tx), {"name": "act"}).all()
        assert [row.payload["target"] for row in one_by_one] == sorted(targets, reverse=True)
        at_once = read_all(tx, _by_target, {"name": "act"})
        wanted = [repr(tuple(row)) for row in one_by_one]
        assert [repr(tuple(at_once.read(row))) for row in at_once.given] == wanted
        assert list(read_all(tx, _by_target, {"name": "unheard of"}).given) == []
    app.kernel.database.close_sync()
