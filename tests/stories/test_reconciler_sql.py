"""Do two SELECTs over a user's own tables make a source, on either database, without any way to write there?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text

from postdate import Kept, NotSent, Postdate, Reason
from postdate.clock import ManualClock
from postdate.store.database import Database
from postdate.testing.factories import make_workspace
from tests.stories.conftest import NOON
from tests.stories.posts import A_MINUTE, TYPE, Posts, reconciled, source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from uuid import UUID

    from sqlalchemy import Engine


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_engine(Database(database_url).sync_engine.url)
    yield engine
    with engine.begin() as connection:
        connection.execute(text("drop table if exists posts"))
    engine.dispose()


@pytest.fixture
async def app(database_url: str, engine: Engine) -> AsyncIterator[Postdate]:
    app = Postdate(database_url, clock=ManualClock(NOON))

    @app.action(TYPE)
    async def publish(_ctx: object, payload: dict[str, object]) -> None:
        if payload.get("busy"):
            raise NotSent("busy")

    yield app
    await app.close()


@pytest.fixture
def team(app: Postdate) -> UUID:
    return make_workspace(app)


@pytest.fixture
def posts(app: Postdate, engine: Engine, team: UUID) -> Posts:
    return Posts(engine, team)


async def test_the_rows_of_a_select_are_what_is_scheduled(app: Postdate, posts: Posts, team: UUID) -> None:
    posts.add("a", extra=json.dumps({"media": ["x.jpg"], "pinned": True}))
    posts.add("draft", state="draft")
    posts.add("theirs", team="somebody else")
    app.source("posts", source())
    assert (await reconciled(app)).inserted == 1
    (action,) = await app.list()
    assert action.payload == {"thing_id": "a", "text": "Hello", "media": ["x.jpg"], "pinned": True}
    assert (action.target_key, action.workspace_id, action.origin_id) == ("instagram", team, "posts")
    assert action.publish_at.isoformat() == "2026-03-09T09:00:00+00:00"
    assert action.intent is not None
    assert (action.intent.wall_time, action.intent.tz) == ("2026-03-09T09:00", "Europe/Lisbon")
    assert (await reconciled(app)).kept == {Kept.UNCHANGED: 1}


async def test_the_queue_follows_the_rows(app: Postdate, posts: Posts) -> None:
    """P45, P46 and P47."""
    for thing in ("moved", "back to draft", "deleted", "stays"):
        posts.add(thing)
    app.source("posts", source())
    await reconciled(app)
    posts.change("moved", publish_on="2026-03-09T10:00")
    posts.change("back to draft", state="draft")
    posts.delete("deleted")
    part = await reconciled(app, after=10 * A_MINUTE)
    assert (part.replaced, part.withdrawn, part.kept) == (1, 2, {Kept.UNCHANGED: 1})
    reasons = {each.thing_id: each.reason for each in await app.list(status="cancelled")}
    assert reasons == {"moved": Reason.DRIFTED, "back to draft": Reason.ORPHANED, "deleted": Reason.ORPHANED}


async def test_a_thing_that_is_finished_there_keeps_what_a_person_retried(app: Postdate, posts: Posts) -> None:
    posts.add("a")
    app.source("posts", source())
    await reconciled(app)
    posts.change("a", state="published")
    assert (await reconciled(app, after=10 * A_MINUTE)).kept == {Kept.PARENT_FINISHED: 1}


async def test_numbers_in_a_key_are_taken_as_their_text(app: Postdate, posts: Posts) -> None:
    posts.add("a")
    row = "select 'publish_post' as action_type, 7 as thing_id, 8 as target, 9 as occurrence, '2027-03-09T09:00Z' as at"
    app.source("posts", source(desired_sql=f"{row} from posts"))
    await reconciled(app)
    (action,) = await app.list()
    assert (action.thing_id, action.target_key, action.occurrence) == ("7", "8", "9")
    assert (await reconciled(app)).kept == {Kept.UNCHANGED: 1}


@pytest.mark.parametrize(
    ("kind", "number"), [("bigint", "7"), ("uuid", "0193e000-0000-7000-8000-000000000000")], ids=["bigint", "uuid"]
)
@pytest.mark.parametrize("compared", ["id", "cast(id as text)"])
async def test_what_has_a_number_or_a_uuid_for_its_id_is_withdrawn_as_any_other(
    app: Postdate, posts: Posts, engine: Engine, kind: str, number: str, compared: str
) -> None:
    posts.add(number)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"alter table posts alter column id type {kind} using id::{kind}"))
    row = "select 'publish_post' as action_type, id as thing_id, '2027-03-09T09:00Z' as at from posts"
    parents = f"select id as thing_id, state = 'published' as finished from posts where {compared} in :thing_ids"
    app.source("posts", source(desired_sql=f"{row} where state = 'approved'", parents_sql=parents))
    assert (await reconciled(app)).inserted == 1
    with engine.begin() as connection:
        connection.execute(text("update posts set state = 'draft'"))
    part = await reconciled(app, after=10 * A_MINUTE)
    assert (part.failed, part.withdrawn) == (None, 1)


async def test_one_thing_is_asked_for_alone(app: Postdate, posts: Posts, team: UUID) -> None:
    for thing in ("a", "b"):
        posts.add(thing)
    app.source("posts", source())
    (planned,) = await app.plan_for("b", source="posts", workspace=team)
    assert planned.step.key.split("\x1f")[1] == "b"


@pytest.mark.parametrize("statement", ["delete from posts", "update posts set state = 'draft'", "drop table posts"])
async def test_nothing_can_be_written_there(app: Postdate, posts: Posts, statement: str) -> None:
    posts.add("a")
    app.source("posts", source(desired_sql=statement), workspaces=[None])
    part = await reconciled(app)
    assert part.failed is not None
    app.kernel.sources = type(app.kernel.sources)()
    app.source("posts", source())
    assert (await reconciled(app)).inserted == 1, "it is all there, and our own connections can write"


async def test_a_statement_that_ends_the_transaction_to_write_is_not_run(
    app: Postdate, posts: Posts, team: UUID
) -> None:
    """Without a parameter the server would take several statements at once."""
    posts.add("a")
    row = "select 'publish_post' as action_type, id as thing_id, publish_on as at from posts"
    app.source("sly", source(desired_sql=f"{row}) as d; commit; delete from posts; select * from ({row}"))
    assert (await reconciled(app)).failed is not None
    app.kernel.sources = type(app.kernel.sources)()
    app.source("posts", source(), workspaces=[team])
    assert (await reconciled(app)).inserted == 1, "it is still there"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"desired_sql": "select id as thing_id from posts"}, "must select action_type, at"),
        ({"desired_sql": "select nonsense"}, "nonsense"),
        ({"parents_sql": "select id from posts where id in :thing_ids"}, "must select finished, thing_id"),
    ],
    ids=["columns", "sql", "parents"],
)
async def test_a_statement_that_does_not_fit_is_told(
    app: Postdate, posts: Posts, wrong: dict[str, str], why: str
) -> None:
    posts.add("a")
    app.source("posts", source())
    await reconciled(app)
    posts.delete("a")
    posts.add("b")
    app.kernel.sources = type(app.kernel.sources)()
    app.source("posts", source(**wrong), workspaces=[(await app.list())[0].workspace_id])
    part = await reconciled(app, after=10 * A_MINUTE)
    assert why in str(part.failed)
    assert part.withdrawn == 0


@pytest.mark.parametrize(
    ("parents", "why"),
    [
        ("select id as thing_id, finished from posts where id in :thing_ids", "finished"),
        ("select id as thing_id from posts where id in :thing_ids", "parents_sql: must select finished"),
        ("select id as thing_id, state as finished from posts where id in :thing_ids", "finished as a boolean"),
    ],
    ids=["sql", "columns", "text"],
)
async def test_a_mistake_in_what_asks_for_parents_is_told_before_anything_is_to_be_withdrawn(
    app: Postdate, posts: Posts, parents: str, why: str
) -> None:
    """P54: else it would come to light on the day when somebody takes a post back."""
    posts.add("a")
    app.source("posts", source(parents_sql=parents))
    (dry,) = (await app.reconcile(dry_run=True)).parts
    assert why in str(dry.failed)
    assert dry.inserted == 1, "and what is wanted is scheduled all the same"
    part = await reconciled(app)
    assert (part.inserted, part.failed) == (1, dry.failed)


async def test_what_asks_for_parents_is_tried_also_where_nothing_is_wanted_yet(app: Postdate, posts: Posts) -> None:
    app.source("posts", source(parents_sql="select id, nonsense from posts where id in :thing_ids"))
    assert "nonsense" in str((await reconciled(app)).failed)
    app.kernel.sources = type(app.kernel.sources)()
    app.source("posts", source())
    assert (await reconciled(app)).failed is None


async def test_a_payload_that_is_no_object_is_refused_and_nothing_is_withdrawn(app: Postdate, posts: Posts) -> None:
    posts.add("goes")
    app.source("posts", source())
    await reconciled(app)
    posts.delete("goes")
    posts.add("odd", extra=json.dumps([1, 2]))
    posts.add("fine")
    part = await reconciled(app, after=10 * A_MINUTE)
    assert (part.inserted, part.refused, part.withdrawn) == (1, 1, 0)


async def test_more_rows_than_are_read_at_once(app: Postdate, posts: Posts, engine: Engine, team: UUID) -> None:
    with engine.begin() as connection:
        rows = [{"id": f"post-{n}", "team": str(team)} for n in range(2_500)]
        said = "insert into posts (id, team, state, publish_on) values (:id, :team, 'approved', '2027-03-09T09:00Z')"
        connection.execute(text(said), rows)
    app.source("posts", source())
    assert (await reconciled(app)).inserted == 2_500
    assert (await reconciled(app)).kept == {Kept.UNCHANGED: 2_500}
