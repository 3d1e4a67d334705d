"""Are uuids uuids, whatever the host has made of psycopg's?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.types.string import TextLoader
from psycopg.types.uuid import UUIDLoader
from sqlalchemy import create_engine

from postdate import AlreadyScheduled, Context, Postdate, Status
from postdate.clock import ManualClock
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def texts() -> Iterator[None]:
    """Let psycopg hand every uuid over as a text, as hosts do that make JSON of their rows."""
    psycopg.adapters.register_loader("uuid", TextLoader)
    yield
    psycopg.adapters.register_loader("uuid", UUIDLoader)


@pytest.mark.usefixtures("texts")
async def test_a_host_whose_psycopg_reads_uuids_as_texts_changes_nothing(postgres_url: str) -> None:
    app = Postdate(postgres_url, clock=ManualClock(NOON))

    @app.action("act")
    async def act(ctx: Context, payload: dict[str, object]) -> None: ...

    made = await app.schedule("act", {"thing_id": "post-1"}, at=NOON)
    with pytest.raises(AlreadyScheduled):
        app.sync.schedule("act", {"thing_id": "post-1"}, at=NOON)
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as plain:
        guest = app.sync.schedule("act", {"thing_id": "post-2"}, at=NOON, connection=plain)
    theirs = create_engine(app.kernel.database.sync_engine.url)
    with theirs.begin() as connection:
        another = app.sync.schedule("act", {"thing_id": "post-3"}, at=NOON, connection=connection)
    theirs.dispose()
    await app.tick()
    published = await app.list(status=Status.PUBLISHED)
    assert {each.id for each in published} == {made.id, guest.id, another.id}
    await app.close()
