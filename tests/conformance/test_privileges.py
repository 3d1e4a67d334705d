"""What may a role of PostgreSQL do through the view that is no superuser?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError

from postdate.testing.scene import POST, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

INSERT = f"insert into postdate.scheduled_actions (action_type, payload, publish_at) values ('{POST}', '{{}}', now())"
CANCEL = "update postdate.scheduled_actions set status = 'cancelled' where status = 'queued'"
READ = [
    "grant usage on schema postdate to {role}",
    "grant select on postdate.scheduled_actions, postdate.actions, postdate.queue, postdate.outcomes to {role}",
]
SCHEDULE = [
    *READ,
    "grant insert on postdate.scheduled_actions, postdate.actions, postdate.queue to {role}",
    "grant select, update (id) on postdate.profiles, postdate.workspaces to {role}",
]
CHANGE = [
    *READ,
    "grant update on postdate.scheduled_actions to {role}",
    "grant delete on postdate.queue to {role}",
    "grant insert on postdate.outcomes, postdate.action_events to {role}",
]


@pytest.fixture
def scene(postgres_url: str) -> Iterator[Scene]:
    with Scene.on(postgres_url) as scene:
        yield scene


@pytest.fixture
def engine(scene: Scene) -> Iterator[Engine]:
    engine = create_engine(scene.app.kernel.database.sync_engine.url)
    yield engine
    engine.dispose()


@contextmanager
def role_with(engine: Engine, grants: list[str]) -> Iterator[Connection]:
    """Open a transaction of a new role that has these rights and no others."""
    role = f"reader_{uuid4().hex}"
    with engine.connect() as connection:
        connection.execute(text(f"create role {role}"))
        for grant in grants:
            connection.execute(text(grant.format(role=role)))
        connection.execute(text(f"set local role {role}"))
        yield connection
        connection.execute(text("reset role"))
        connection.execute(text(f"drop owned by {role}"))
        connection.execute(text(f"drop role {role}"))
        connection.commit()


@contextmanager
def denied(connection: Connection, what: str = "") -> Iterator[None]:
    """Expect that the role may not do what the block does."""
    with pytest.raises(ProgrammingError, match=f"permission denied .*{what}"), connection.begin_nested():
        yield


def test_a_role_that_may_read_reads(scene: Scene, engine: Engine) -> None:
    """P11-P23: the view has the reader's rights, not those of its owner (security_invoker)."""
    action = scene.action()
    with role_with(engine, READ) as connection:
        assert connection.scalars(text("select id from postdate.scheduled_actions")).all() == [action.id]


@pytest.mark.parametrize("missing", ["actions", "queue", "outcomes"])
def test_the_view_opens_no_way_around_the_rights_on_the_tables(scene: Scene, engine: Engine, missing: str) -> None:
    scene.action()
    grants = [*READ, f"revoke select on postdate.{missing} from {{role}}"]
    with role_with(engine, grants) as connection, denied(connection, f"table {missing}"):
        connection.execute(text("select id from postdate.scheduled_actions"))


def test_a_role_that_may_schedule_schedules_and_nothing_more(scene: Scene, engine: Engine) -> None:
    """P11: what docs/operations.md grants for it."""
    action = scene.action()
    with role_with(engine, SCHEDULE) as connection:
        assert connection.scalar(text(f"{INSERT} returning status")) == "queued"
        with denied(connection):
            connection.execute(text(CANCEL))
    assert scene.get(action) == action
    assert len(scene.app.sync.list(status="queued")) == 2


def test_a_role_that_may_cancel_cancels_and_nothing_more(scene: Scene, engine: Engine) -> None:
    """P30: and the history names it."""
    action = scene.action()
    with role_with(engine, CHANGE) as connection:
        with denied(connection):
            connection.execute(text(INSERT))
        assert connection.execute(text(CANCEL)).rowcount == 1
    assert scene.get(action).status == "cancelled"
    assert scene.app.sync.history(action.id)[-1].actor.startswith("sql:")


def test_a_role_without_rights_does_nothing(scene: Scene, engine: Engine) -> None:
    scene.action()
    for statement in ("select 1 from postdate.scheduled_actions", INSERT, CANCEL):
        with role_with(engine, []) as connection, denied(connection):
            connection.execute(text(statement))
