"""Does `postdate tick` fire what is due once, say so, and fail where the pass does?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from postdate import Postdate
from postdate.store.heartbeat import hold_all

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.shell import Shell

PAST = "2020-01-01T00:00Z"

SHOP = """
from postdate import Postdate

app = Postdate()

@app.action("quick")
async def quick(ctx, payload):
    return "provider-1"

@app.action("other")
def other(ctx, payload):
    pass
"""


@pytest.fixture
def shop(modules: Path) -> str:
    (modules / "ticked_shop.py").write_text(SHOP)
    return "ticked_shop:app"


def scheduled(postdate: Shell, shop: str, action_type: str) -> str:
    answer = postdate.done("schedule", "--app", shop, action_type, "--at", PAST, "--json")
    return str(answer.json["id"])


def status(postdate: Shell, action: str) -> str:
    return str(postdate.done("show", action, "--json").json["status"])


def test_what_is_due_is_fired_and_told(postdate: Shell, shop: str) -> None:
    action = scheduled(postdate, shop, "quick")
    assert postdate.done("tick", shop).out == "1 due, 0 lost leases settled\n"
    assert status(postdate, action) == "published"
    assert postdate.done("tick", shop).out == "0 due, 0 lost leases settled\n"


def test_programs_get_an_object_and_only_the_types_that_are_named_are_served(on_sqlite: Shell, shop: str) -> None:
    action, other = scheduled(on_sqlite, shop, "quick"), scheduled(on_sqlite, shop, "other")
    told = on_sqlite.done("tick", "--app", shop, "--types", "quick", "--json").json
    assert told.pop("now").endswith("Z")
    assert told == {"due": 1, "recovered": 0, "held": False}
    assert (status(on_sqlite, action), status(on_sqlite, other)) == ("published", "queued")


def test_a_pass_that_finds_the_installation_on_hold_fails(on_sqlite: Shell, shop: str) -> None:
    action = scheduled(on_sqlite, shop, "quick")
    app = Postdate(on_sqlite.settings["POSTDATE_DATABASE_URL"])
    with app.kernel.transaction(None) as tx:
        hold_all(tx, now=app.kernel.now(tx), because="it looks like an old backup")
    app.kernel.database.close_sync()
    answer = on_sqlite("tick", shop, "--json")
    assert (answer.code, answer.json["held"]) == (1, True)
    assert "on hold" in answer.err
    assert status(on_sqlite, action) == "queued"


def test_a_pass_without_the_schema_fails(elsewhere: Path, on_sqlite: Shell, shop: str) -> None:
    (elsewhere / "empty.db").touch()
    answer = on_sqlite("tick", shop, "--database-url", "sqlite:///empty.db")
    assert (answer.code, answer.out) == (4, "")
    assert "postdate db upgrade" in answer.err


def test_what_nobody_has_set_up_waits_while_the_rest_goes_out(on_sqlite: Shell) -> None:
    mail = on_sqlite.done(
        *("schedule", "send_email", "--at", PAST, "--json", "--set", "to=ana@example.com"),
        *("--set", "subject=Hi", "--set", "text=Hi"),
    ).json["id"]
    reminder = on_sqlite.reminder(at=PAST)
    answer = on_sqlite.done("tick")
    assert answer.out == "1 due, 0 lost leases settled\n"
    assert "send_email needs POSTDATE_SMTP_URL" in answer.err
    assert (status(on_sqlite, mail), status(on_sqlite, reminder)) == ("queued", "published")
    waiting = on_sqlite.done("tick", "--types", "reminder").err
    assert "due for over an hour, and nobody runs it here" in waiting
    assert "POSTDATE_SMTP_URL" not in waiting
    named = on_sqlite("tick", "--types", "send_email")
    assert (named.code, "send_email needs POSTDATE_SMTP_URL" in named.err) == (4, True)


def test_a_type_that_does_not_exist_is_refused(on_sqlite: Shell, shop: str) -> None:
    assert on_sqlite("tick", shop, "--types", "nope").code == 2
