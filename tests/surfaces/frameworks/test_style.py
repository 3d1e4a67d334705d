"""Is the code of the guides as one would like to find it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.surfaces.frameworks.guide import run, write

if TYPE_CHECKING:
    from pathlib import Path

RULES = "E,F,I,B,UP,SIM,RUF,ASYNC,PIE,PT"


@pytest.mark.parametrize("page", ["fastapi.md", "flask.md", "django.md", "testing.md"])
def test_it_passes_the_usual_checks(page: str, tmp_path: Path) -> None:
    write(page, tmp_path)
    run(tmp_path, "ruff", "check", "--isolated", "--line-length", "120", "--select", RULES, ".")
    run(tmp_path, "ruff", "format", "--isolated", "--line-length", "120", "--check", ".")


@pytest.mark.timeout(400)  # mypy reads all of pydantic and SQLAlchemy
@pytest.mark.parametrize("page", ["fastapi.md", "flask.md"])
def test_its_types_are_right(page: str, tmp_path: Path) -> None:
    write(page, tmp_path)
    run(tmp_path, "mypy", "--strict", "shop.py")
