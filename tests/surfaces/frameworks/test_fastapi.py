"""Does the app of docs/fastapi.md run as it stands, on a real server, with the engine within it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from postdate import Postdate
from tests.databases import NO_POSTGRES, POSTGRES
from tests.surfaces.frameworks.guide import Process, passes, run, started, write

if TYPE_CHECKING:
    from pathlib import Path

UVICORN = ("uvicorn", "--port", "0")
SCHEDULE = """
import shop

review = shop.Review(thing_id="order-1", email="ana@example.com")
shop.app.sync.schedule("ask_for_review", review, at="2026-01-01T00:00Z")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write("fastapi.md", tmp_path)
    return tmp_path


def address(server: Process) -> str:
    return server.wait_for(r"running on (http://127\.0\.0\.1:\d+)")[1]


def order(server: str, number: int = 1) -> Any:
    due = {"id": f"order-{number}", "email": "ana@example.com", "card": "good", "review_at": "2026-01-01T00:00Z"}
    answer = httpx2.post(f"{server}/orders", json=due, timeout=60)
    assert answer.status_code == 201, answer.text
    return answer.json()


def statuses(shop: Path) -> dict[str, str]:
    app = Postdate(f"sqlite:///{shop}/shop.db")
    found = {str(action.thing_id): str(action.status) for action in app.sync.list()}
    app.kernel.database.close_sync()
    return found


def test_its_tests_pass_on_sqlite(shop: Path) -> None:
    assert "4 passed" in passes(shop)


@pytest.mark.skipif(POSTGRES == [NO_POSTGRES], reason="there is no PostgreSQL on this machine")
def test_its_tests_pass_on_postgresql(shop: Path) -> None:
    assert "4 passed" in passes(shop, "--postdate-database", "postgresql")


def test_the_server_fires_what_it_took_and_ends_well(shop: Path) -> None:
    run(shop, "python", "shop.py")
    with started(shop, *UVICORN, "shop:api") as server:
        url = address(server)
        assert httpx2.get(f"{url}/health").json() == {"engine": "runs"}
        order(url)
        server.wait_for("asked for a review")
        server.process.terminate()
        server.wait_for("Application shutdown complete")
    assert statuses(shop) == {"order-1": "published"}


def test_a_lifespan_of_the_hosts_own_runs_the_engine_too(shop: Path) -> None:
    run(shop, "python", "shop.py")
    with started(shop, *UVICORN, "own_lifespan:api") as server:
        server.wait_for("startup complete")
        run(shop, "python", "-c", SCHEDULE)
        server.wait_for("asked for a review")
        server.process.terminate()
        server.wait_for("Application shutdown complete")


def test_each_worker_has_an_engine_and_each_action_fires_once(shop: Path) -> None:
    run(shop, "python", "shop.py")
    orders = [str(number) for number in range(20)]
    with started(shop, *UVICORN, "--workers", "2", "shop:api") as server:
        url = address(server)
        for _ in range(2):
            server.wait_for("startup complete")
        for number in orders:
            order(url, int(number))
        asked = [server.wait_for(r"asked for a review.*order-(\d+)")[1] for _ in orders]
        server.process.terminate()
        server.wait_for("Application shutdown complete")
    assert sorted(asked, key=int) == orders
    assert set(statuses(shop).values()) == {"published"}


def test_a_change_of_the_code_starts_the_engine_again(shop: Path) -> None:
    run(shop, "python", "shop.py")
    with started(shop, *UVICORN, "--reload", "shop:api") as server:
        url = address(server)
        server.wait_for("startup complete")
        order(url, 1)
        server.wait_for("asked for a review")
        (shop / "shop.py").write_text((shop / "shop.py").read_text().replace("asked for", "begged for"))
        server.wait_for("startup complete")
        order(url, 2)
        server.wait_for("begged for a review")


def test_a_server_without_the_schema_does_not_start(shop: Path) -> None:
    with started(shop, *UVICORN, "shop:api") as server:
        server.wait_for("run `postdate db upgrade`")
        assert server.process.wait(60) == 3
