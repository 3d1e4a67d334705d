"""How does a person see from a shell which addresses are gone, and have one called again?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from postdate import Postdate, Rejected
from postdate.store.endpoints import disable_if_action_exists
from tests.surfaces.cli.acting import fire

if TYPE_CHECKING:
    from tests.surfaces.cli.shell import Shell

URL = "https://hooks.example/orders?of=shop"
SINCE = datetime(2027, 3, 14, 9, tzinfo=UTC)
SYSTEM = UUID(int=0)


def disabled(database_url: str, *, workspace: UUID | None = None) -> str:
    """Return the id of an action that found the address gone."""
    app = Postdate(database_url)
    tables = "" if app.kernel.database.is_sqlite else "postdate."

    @app.action("reminder")
    async def remind(ctx: object, payload: dict[str, str]) -> None:
        raise Rejected("answered 410")

    with app.kernel.database.sync_engine.begin() as connection:
        if workspace is not None:
            connection.execute(text(f"insert into {tables}workspaces (id) values ('{workspace}')"))
    action = UUID(fire(app, "reminder", {"text": "Hi"}, workspace=workspace))
    owner = workspace or SYSTEM
    with app.kernel.transaction(None) as tx:
        assert disable_if_action_exists(tx, owner=owner, url=URL, action_id=action, now=SINCE)
    app.kernel.database.close_sync()
    return str(action)


def test_an_address_that_is_gone_is_listed_enabled_and_its_action_retried(postdate: Shell, database_url: str) -> None:
    action = disabled(database_url)
    line = f"2027-03-14T09:00:00Z {URL} user {SYSTEM}, action {action}\n"
    assert postdate.done("endpoints", "list").out == line
    assert postdate.done("endpoints", "enable", URL, "--note", "they moved back", "--actor", "ana").out == line
    assert postdate.done("endpoints", "list").out == ""
    (*_, event) = postdate.done("show", action, "--json").json["history"]
    assert (event["cause"], event["actor"]) == ("endpoint_enabled", "ana")
    assert event["detail"] == {"url": URL, "note": "they moved back"}
    again = postdate("endpoints", "enable", URL)
    assert (again.code, again.err) == (3, f"postdate: no disabled endpoint '{URL}'\n")
    assert postdate.done("retry", action, "--json").json["status"] == "queued"


def test_a_workspaces_address_is_its_own(postdate: Shell, database_url: str) -> None:
    ours = uuid4()
    action = disabled(database_url, workspace=ours)
    told = {"url": URL, "workspace_id": str(ours), "user_id": str(SYSTEM), "action_id": action}
    told["disabled_at"] = "2027-03-14T09:00:00Z"
    assert postdate.done("endpoints", "list", "--workspace", str(ours), "--json").json == told
    assert postdate.done("endpoints", "list", "--user", str(SYSTEM)).out == ""
    assert postdate("endpoints", "enable", URL).code == 3
    assert f"workspace {ours}" in postdate.done("endpoints", "list", "--limit", "1").out
    assert postdate.done("endpoints", "enable", URL, "--workspace", str(ours), "--json").json == told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "--workspace", "x"), "workspace: must be a uuid"),
        (("list", "--limit", "0"), "limit: must be"),
        (("enable", "hooks.example"), "url: must begin with https://"),
        (("enable", "https://hooks.example/", "--user", "x"), "user: must be a uuid"),
    ],
)
def test_what_is_none_is_told_by_name(on_sqlite: Shell, arguments: tuple[str, ...], said: str) -> None:
    answer = on_sqlite("endpoints", *arguments)
    assert answer.code == 2
    assert answer.err.startswith(f"postdate: {said}")
