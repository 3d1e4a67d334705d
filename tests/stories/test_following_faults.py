"""What becomes of actions that follow their wall times where the database or their owner goes away meanwhile?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.exc import OperationalError

from postdate import Context, NotFound, Postdate, Status
from postdate.engine import follow
from postdate.engine.shifts import Walk
from postdate.engine.zones import ZonePass
from postdate.testing.factories import make_profile, make_workspace
from tests.stories.conftest import NOON
from tests.zone_rules import rules_in_force

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from postdate import Action

LISBON = "Europe/Lisbon"
IN_LISBON, IN_WINTER_TIME = datetime(2026, 7, 1, 8, tzinfo=UTC), datetime(2026, 7, 1, 9, tzinfo=UTC)
NO_SUMMER = {LISBON: "WET0"}
A_MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _registered(app: Postdate) -> None:
    @app.action("mail")
    async def mail(ctx: Context, payload: dict[str, Any]) -> None: ...


async def nine(app: Postdate, **asked: Any) -> Action:
    return await app.schedule("mail", {}, at="2026-07-01T09:00", tz=LISBON, **asked)


async def test_where_the_database_goes_away_nothing_counts_as_refused_and_the_next_pass_follows(
    app: Postdate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    olds = [await nine(app) for _ in range(2)]

    def away(*_: object, **__: object) -> set[UUID]:
        lost = ConnectionResetError("the server went away")
        raise OperationalError("select 1", {}, lost, connection_invalidated=True)

    with rules_in_force(tmp_path, "2099a", NO_SUMMER):
        with monkeypatch.context() as patched:
            patched.setattr(follow, "follow_at_once", away)
            with pytest.raises(OperationalError, match="went away"):
                await ZonePass(app.kernel).run_once(NOON)
        assert {(each.id, each.publish_at) for each in await app.list()} == {(old.id, IN_LISBON) for old in olds}
        report = await ZonePass(app.kernel).run_once(NOON + A_MINUTE)
    assert (report.by_rules, report.followed, report.refused) == (True, 2, 0)
    assert {each.publish_at for each in await app.list(status=Status.QUEUED)} == {IN_WINTER_TIME}


@pytest.mark.parametrize("owner", ["workspaces", "profiles"])
async def test_an_owner_who_is_deleted_between_looking_and_following_holds_no_other_back(
    app: Postdate, tmp_path: Path, owner: str
) -> None:
    workspace, user = make_workspace(app), make_profile(app)
    gone = await nine(app, **({"workspace": workspace} if owner == "workspaces" else {"user": user}))
    others = [await nine(app), await nine(app, workspace=make_workspace(app), user=make_profile(app))]
    with rules_in_force(tmp_path, "2099a", NO_SUMMER):
        walk = Walk(app.kernel, now=NOON)
        await app.kernel.work(walk.begin, read_only=True)
        shifts = await app.kernel.work(walk.following, read_only=True)
        assert shifts is not None
        with app.kernel.transaction(None) as tx:
            table = getattr(tx.tables, owner)
            tx.execute(table.delete().where(table.c.id == (workspace if owner == "workspaces" else user)))
        followed, refused = await follow.follow(app.kernel, shifts, now=NOON)
    assert (followed, refused) == ({each.id for each in others}, [])
    with pytest.raises(NotFound):
        await app.get(gone.id)
    assert {each.publish_at for each in await app.list(status=Status.QUEUED)} == {IN_WINTER_TIME}
