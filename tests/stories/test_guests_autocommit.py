"""Is a connection that commits each statement by itself refused, and may a guest be the first who connects?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from postdate import Context, Misconfigured, Postdate
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from postdate.clock import ManualClock


async def act(ctx: Context, payload: dict[str, object]) -> None: ...


@pytest.fixture
def shop(database_url: str, clock: ManualClock) -> Iterator[Postdate]:
    app = Postdate(database_url, clock=clock)
    app.action("act")(act)
    yield app
    asyncio.run(app.close())


@pytest.fixture
def unending(shop: Postdate) -> Iterator[Engine]:
    """Return an engine of the host's whose connections commit each statement by itself."""
    engine = create_engine(shop.kernel.database.sync_engine.url, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


def test_a_sqlalchemy_connection_in_autocommit_is_refused_and_nothing_is_written(
    shop: Postdate, unending: Engine
) -> None:
    """An action would else stay though the business row beside it is rolled back."""
    with unending.connect() as connection, pytest.raises(Misconfigured, match="autocommit"):
        shop.sync.schedule("act", {"thing_id": "post-1"}, at=NOON, connection=connection)
    with Session(unending) as session, pytest.raises(Misconfigured, match="autocommit"):
        shop.sync.schedule("act", {"thing_id": "post-1"}, at=NOON, connection=session)
    assert shop.sync.list() == []


def test_a_guest_may_come_before_the_app_has_connected_itself(postgres_url: str) -> None:
    """What its SQL looks like depends on the server, which nobody has asked yet."""
    app = Postdate(postgres_url)
    app.action("act")(act)
    bare = app.kernel.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    connection: Any = psycopg.connect(bare)
    with connection:
        action = app.sync.schedule("act", {"thing_id": "post-1"}, at=NOON, connection=connection)
    assert app.kernel.database.sync_engine.dialect.server_version_info is not None
    assert [each.id for each in app.sync.list()] == [action.id]
    asyncio.run(app.close())
