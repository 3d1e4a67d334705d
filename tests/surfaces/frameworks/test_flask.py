"""Does the app of docs/flask.md run as it stands, and fire?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.databases import NO_POSTGRES, POSTGRES
from tests.surfaces.frameworks.guide import passes, run, started, write

if TYPE_CHECKING:
    from pathlib import Path

ORDER = """
import shop

new = {"id": "order-1", "email": "ana@example.com", "card": "good", "review_at": "2026-01-01T00:00Z"}
assert shop.web.test_client().post("/orders", json=new).status_code == 201
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write("flask.md", tmp_path)
    return tmp_path


def test_its_tests_pass_on_sqlite(shop: Path) -> None:
    assert "4 passed" in passes(shop)


@pytest.mark.skipif(POSTGRES == [NO_POSTGRES], reason="there is no PostgreSQL on this machine")
def test_its_tests_pass_on_postgresql(shop: Path) -> None:
    assert "4 passed" in passes(shop, "--postdate-database", "postgresql")


def test_what_the_web_process_scheduled_fires_in_a_process_beside_it(shop: Path) -> None:
    run(shop, "python", "shop.py")
    with started(shop, "postdate", "serve", "shop:app") as engine:
        engine.wait_for('"serving"')
        run(shop, "python", "-c", ORDER)
        engine.wait_for("asked for a review")
        engine.process.terminate()
        engine.wait_for('"stopped"')
