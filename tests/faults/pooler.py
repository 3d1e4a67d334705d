"""How does a test get a real PgBouncer in transaction mode?"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import make_url

from postdate.clock import monotonic

if TYPE_CHECKING:
    from types import TracebackType

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SERVER_CONNECTIONS = 2
PATIENCE = 20.0

# No `ignore_startup_parameters`, no reset query and no prepared statements: nothing that would make it easier.
SETTINGS = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
logfile = {folder}/log
"""


class PgBouncer:
    """A pooler before one server, as long as its `with` block lasts; root runs it as `nobody`."""

    def __init__(self, database_url: str) -> None:
        self._behind = make_url(database_url)

    def __enter__(self) -> Self:
        assert PROGRAM
        nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="postdate-pooler-"))
        port = free_port()
        (self._folder / "users").write_text(f'"{self._behind.username}" ""\n')
        settings = SETTINGS.format(
            host=self._behind.host,
            port=self._behind.port,
            listen=port,
            folder=self._folder,
            connections=SERVER_CONNECTIONS,
        )
        (self._folder / "settings").write_text(settings)
        if nobody:
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        self._process = subprocess.Popen(
            [PROGRAM, "-q", self._folder / "settings"],
            user=nobody and nobody.pw_uid,
            group=nobody and nobody.pw_gid,
            extra_groups=[] if nobody else None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.url = self._behind.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        self._await(port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)

    def _await(self, port: int) -> None:
        given_up = monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                log = self._folder / "log"
                said = log.read_text() if log.exists() else ""
                assert self._process.poll() is None, f"PgBouncer did not start: {said}"
                assert monotonic() < given_up, f"PgBouncer does not listen: {said}"
            else:
                return


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
