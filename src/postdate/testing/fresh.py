"""Where does a test get a database that nobody has used?

From a template that is migrated once, which a copy of takes some milliseconds.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, assert_never
from uuid import uuid4

from postdate.store.migrate import upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

Kind = Literal["sqlite", "postgresql"]

POSTGRES_URL = "POSTDATE_TEST_POSTGRES_URL"
"""Names a PostgreSQL server to test on: the SQLAlchemy URL of a user who may create databases."""


class FreshDatabases(Protocol):
    """Gives databases with our tables in them."""

    def fresh(self) -> AbstractContextManager[str]:
        """Give the URL of a new database, which is gone after the block."""


@contextmanager
def fresh_databases(kind: Kind, folder: Path) -> Iterator[FreshDatabases]:
    """Give databases of a kind within the block: SQLite's in `folder`, PostgreSQL's on a server.

    That is the server which `POSTDATE_TEST_POSTGRES_URL` names, else one that runs within the block; raises
    `ServerNotStarted` where this machine has none.
    """
    match kind:
        case "sqlite":
            yield _Sqlite(folder)
        case "postgresql":
            with ExitStack() as undo:
                yield _Postgres(os.environ.get(POSTGRES_URL) or _started(undo), undo)
        case _:
            assert_never(kind)


class _Sqlite:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def fresh(self) -> Iterator[str]:
        file = self._folder / f"{uuid4().hex}.db"
        shutil.copyfile(self._template, file)
        yield f"sqlite:///{file}"

    @cached_property
    def _template(self) -> Path:
        file = self._folder / "template.db"
        upgrade(f"sqlite:///{file}")
        return file


class _Postgres:
    def __init__(self, admin_url: str, undo: ExitStack) -> None:
        self._admin_url = admin_url
        self._undo = undo

    @contextmanager
    def fresh(self) -> Iterator[str]:
        from postdate.testing.postgres import create_database, drop_database  # noqa: PLC0415 - psycopg is an extra

        name = f"postdate_{uuid4().hex}"
        try:
            yield create_database(self._admin_url, name, self._template)
        finally:
            drop_database(self._admin_url, name)

    @cached_property
    def _template(self) -> str:
        from postdate.testing.postgres import create_database, drop_database  # noqa: PLC0415 - psycopg is an extra

        name = f"postdate_template_{uuid4().hex}"
        self._undo.callback(drop_database, self._admin_url, name)
        upgrade(create_database(self._admin_url, name))
        return name


def _started(undo: ExitStack) -> str:
    from postdate.testing.postgres import LocalPostgres  # noqa: PLC0415 - psycopg is an extra

    return undo.enter_context(LocalPostgres(fsync=False)).url()
