"""Do the tests of docs/testing.md pass as they stand?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.databases import NO_POSTGRES, POSTGRES
from tests.surfaces.frameworks.guide import passes, write

if TYPE_CHECKING:
    from pathlib import Path


def test_on_sqlite(tmp_path: Path) -> None:
    write("testing.md", tmp_path)
    assert "5 passed" in passes(tmp_path)


@pytest.mark.skipif(POSTGRES == [NO_POSTGRES], reason="there is no PostgreSQL on this machine")
def test_on_postgresql(tmp_path: Path) -> None:
    write("testing.md", tmp_path)
    assert "5 passed" in passes(tmp_path, "--postdate-database", "postgresql")
