"""Does a test get what it asks the factories for?"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from postdate import Context, Invalid, Postdate, Reason, Status
from postdate.domain.states import REASONS
from postdate.testing.factories import STATES, make_action, make_profile, make_workspace
from postdate.testing.scene import NOON, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator


class Post(BaseModel):
    thing_id: str
    text: str


@pytest.fixture
def app(database_url: str) -> Iterator[Postdate]:
    """An app as its users have it: on the real clock, with a type of its own."""
    app = Postdate(database_url)

    @app.action("publish", auto_attempts=5)
    async def publish(ctx: Context, post: Post) -> None: ...

    yield app
    app.kernel.database.close_sync()


def test_there_is_a_state_for_every_status_and_reason() -> None:
    """P18."""
    assert len(STATES) == len(set(STATES)) == 15
    assert {status for status, _ in STATES} == set(Status)
    assert {reason for _, reason in STATES} == {None, *Reason}
    assert all(reason in REASONS.get(status, {None}) for status, reason in STATES)


def test_an_action_of_any_app_comes_in_every_state(app: Postdate) -> None:
    """P27-P34: each has come there by moves that the history tells."""
    owners: dict[str, Any] = {"workspace": make_workspace(app), "user": make_profile(app)}
    for status, reason in STATES:
        post = Post(thing_id=f"{status} {reason}", text="Hi")
        made = make_action(app, status, reason, action_type="publish", payload=post, target="instagram", **owners)
        assert (made.status, made.reason) == (status, reason)
        assert made == app.sync.get(made.id)
        assert (made.workspace_id, made.user_id) == (owners["workspace"], owners["user"])
        causes = [event.cause for event in app.sync.history(made.id)]
        assert causes[0] == "schedule"
        assert len(causes) == {Status.QUEUED: 1, Status.SUBMITTED: 1}.get(status, 3 if reason == "dismissed" else 2)


@pytest.mark.parametrize(("status", "reason"), [("queued", "user"), ("failed", None), ("failed", "user"), ("x", None)])
def test_a_state_that_there_is_not_is_refused(app: Postdate, status: str, reason: str | None) -> None:
    with pytest.raises(Invalid, match="none that"):
        make_action(app, status, reason, action_type="publish")  # type: ignore[arg-type]
    assert app.sync.list() == []


def test_an_action_that_another_one_is_due_before_is_not_mistaken_for_it(database_url: str) -> None:
    with Scene.on(database_url) as scene:
        first = scene.action(at=NOON.replace(year=2026))
        with pytest.raises(LookupError, match="due before"):
            scene.action(Status.PUBLISHED)
        assert scene.get(first).status is Status.SUBMITTED


def test_owners_have_the_zones_that_they_are_given(database_url: str) -> None:
    """P5."""
    with Scene.on(database_url) as scene:
        tokyo = make_profile(scene.app, tz="Asia/Tokyo")
        lisbon = make_workspace(scene.app, account_timezone="Europe/Lisbon")
        asked: dict[str, Any] = {"at": "2027-07-01T09:00", "user": tokyo}
        assert scene.action(**asked, workspace=None).publish_at.hour == 0
        assert scene.action(**asked, workspace=lisbon).publish_at.hour == 8


@pytest.mark.parametrize(
    ("missing", "modules"),
    [("pytest", ["factories", "moves", "scene", "postgres"]), ("psycopg", ["factories", "conformance"])],
)
def test_what_can_do_without_an_extra_does_not_need_it(missing: str, modules: list[str]) -> None:
    wanted = ", ".join(f"postdate.testing.{module}" for module in modules)
    program = f"import sys; sys.modules['{missing}'] = None; import {wanted}"
    subprocess.run([sys.executable, "-c", program], check=True)
