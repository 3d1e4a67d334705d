"""How does a test use the command line?

`postdate`   calls it in this process, on a fresh database of each kind
`on_sqlite`  the same on SQLite alone, for what has nothing to do with the database
`program`    starts the installed script in processes of their own, on the same database as `postdate`
`local`      likewise beside `on_sqlite`
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.surfaces.cli.program import Program
from tests.surfaces.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with modules of the test's own."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def postdate(database_url: str, elsewhere: Path) -> Shell:
    return Shell(database_url)


@pytest.fixture
def on_sqlite(sqlite_url: str, elsewhere: Path) -> Shell:
    return Shell(sqlite_url)


@pytest.fixture
def program(database_url: str, elsewhere: Path) -> Iterator[Program]:
    started = Program(database_url, folder=elsewhere)
    yield started
    started.kill()


@pytest.fixture
def local(sqlite_url: str, elsewhere: Path) -> Iterator[Program]:
    started = Program(sqlite_url, folder=elsewhere)
    yield started
    started.kill()


@pytest.fixture
def modules(elsewhere: Path) -> Iterator[Path]:
    """Let modules of the working folder be imported, and forget them afterwards."""
    path, known = list(sys.path), set(sys.modules)
    yield elsewhere
    sys.path[:] = path
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and file.startswith(str(elsewhere)):
            del sys.modules[name]
