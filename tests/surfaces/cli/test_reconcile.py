"""Does `postdate reconcile` make the queue hold what the sources want, and say so to people and to programs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.shell import Shell

SHOP = """
import json
from pathlib import Path

from postdate import Desired, Postdate

app = Postdate()

@app.action("publish_post")
async def publish_post(ctx, payload):
    pass

class Posts:
    async def desired(self, workspace, *, thing_id=None):
        for thing, at in json.loads(Path(__file__).with_suffix(".json").read_text()).items():
            if at == "broken":
                raise OSError("the shop is closed")
            yield Desired(action_type="publish_post", payload={"thing_id": thing}, at=at, target="instagram")

    async def parents(self, thing_ids):
        return {}

app.source("posts", Posts(), workspaces=[None])
"""
NINE, TEN = "2099-03-14T09:00:00Z", "2099-03-14T10:00:00Z"


class Shop:
    """An application whose source says what a file does."""

    def __init__(self, folder: Path) -> None:
        (folder / "reconciled_shop.py").write_text(SHOP)
        self._posts = folder / "reconciled_shop.json"

    def wants(self, text: str) -> None:
        self._posts.write_text(text)


@pytest.fixture
def shop(modules: Path) -> Shop:
    return Shop(modules)


APP = ("--app", "reconciled_shop:app")


def without_ids(line: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in line.items() if value is not None and name not in {"replaces_id", "action_id"}
    }


def test_programs_get_each_change_and_a_summary(postdate: Shell, shop: Shop) -> None:
    shop.wants(f'{{"a": "{NINE}", "b": "{NINE}"}}')
    *steps, part = postdate.done("reconcile", *APP, "--json").json_lines
    assert [without_ids(step) for step in steps] == [
        {
            "step": "insert",
            "source": "posts",
            "action_type": "publish_post",
            "thing_id": thing,
            "target_key": "instagram",
            "occurrence": "",
            "publish_at": NINE,
            "clashed": False,
        }
        for thing in ("a", "b")
    ]
    counts = {"inserted": 2, "replaced": 0, "withdrawn": 0, "clashed": 0, "refused": 0, "kept": {}, "failed": None}
    assert part == {"source": "posts", "workspace_id": None, **counts}
    (first,) = postdate.done("list", "--thing", "a", "--json").json_lines
    shop.wants(f'{{"a": "{TEN}", "b": "{NINE}"}}')
    replaced, part = postdate.done("reconcile", *APP, "--json").json_lines
    assert (replaced["step"], replaced["replaces_id"], replaced["publish_at"]) == ("replace", first["id"], TEN)
    assert part["kept"] == {"unchanged": 1}


def test_people_get_lines_and_a_dry_run_does_nothing(on_sqlite: Shell, shop: Shop) -> None:
    shop.wants(f'{{"a": "{NINE}"}}')
    told = [f"insert   publish_post / a / instagram, due {NINE}", "posts: 1 inserted"]
    for _ in range(2):
        assert on_sqlite.done("reconcile", *APP, "--dry-run").lines == told
    assert on_sqlite.done("list").out == ""
    assert on_sqlite.done("reconcile", *APP).lines == told
    assert on_sqlite.done("reconcile", *APP).lines == ["posts: 1 kept (unchanged)"]


def test_what_cannot_be_scheduled_or_heard_is_told_with_an_exit_code_of_its_own(on_sqlite: Shell, shop: Shop) -> None:
    shop.wants(f'{{"a": "tomorrow", "b": "{NINE}"}}')
    answer = on_sqlite("reconcile", *APP)
    assert answer.code == 5
    assert "insert   publish_post / a / instagram: refused: " in answer.out
    assert answer.lines[-1] == "posts: 1 inserted, 1 refused"
    shop.wants(f'{{"b": "{NINE}", "c": "broken"}}')
    answer = on_sqlite("reconcile", *APP)
    assert answer.code == 5
    assert answer.err == "postdate: posts was not reconciled to the end: OSError: the shop is closed\n"


def test_without_sources_there_is_nothing_to_do(on_sqlite: Shell) -> None:
    answer = on_sqlite("reconcile")
    assert (answer.code, answer.out) == (4, "")
    assert "has no sources" in answer.err
