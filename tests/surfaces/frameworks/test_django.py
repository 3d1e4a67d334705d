"""Does the project of docs/django.md run as it stands, and fire, on both databases?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url

from tests.surfaces.frameworks.guide import run, started, write

if TYPE_CHECKING:
    from pathlib import Path

ON_POSTGRES = """
from settings import *

DATABASES = {{
    "default": {{
        "ENGINE": "django.db.backends.postgresql",
        "HOST": {host!r},
        "PORT": {port!r},
        "USER": {username!r},
        "PASSWORD": {password!r},
        "NAME": {database!r},
        "TEST": {{"NAME": "{database}_test"}},
    }}
}}
"""
ORDER = """
import worker
from django.test import Client

new = {"id": "order-1", "email": "ana@example.com", "card": "good", "review_at": "2026-01-01T00:00Z"}
assert Client().post("/orders", new, content_type="application/json").status_code == 201
"""


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> dict[str, str]:
    """Write the project, and return the environment that it runs in."""
    write("django.md", tmp_path)
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        return {"DJANGO_SETTINGS_MODULE": "settings"}
    (tmp_path / "on_postgres.py").write_text(ON_POSTGRES.format(**url._asdict() | {"port": str(url.port or "")}))
    return {"DJANGO_SETTINGS_MODULE": "on_postgres"}


def test_its_tests_pass(settings: dict[str, str], tmp_path: Path) -> None:
    run(tmp_path, "python", "-m", "django", "makemigrations", "shop", **settings)
    assert "Ran 5 tests" in run(tmp_path, "python", "-m", "django", "test", "--no-input", **settings)


def test_what_a_view_scheduled_fires_in_a_process_beside_it(settings: dict[str, str], tmp_path: Path) -> None:
    run(tmp_path, "python", "-m", "django", "makemigrations", "shop", **settings)
    run(tmp_path, "python", "-m", "django", "migrate", **settings)
    run(tmp_path, "postdate", "db", "upgrade", "--app", "worker:app", **settings)
    with started(tmp_path, "postdate", "serve", "worker:app", **settings) as engine:
        engine.wait_for('"serving"')
        run(tmp_path, "python", "-c", ORDER, **settings)
        engine.wait_for("asked for a review")
        engine.process.terminate()
        engine.wait_for('"stopped"')
