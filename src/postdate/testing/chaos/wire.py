"""How does every connection to a server break at once, in the middle of whatever it was about?"""

from __future__ import annotations

import socket
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING

from sqlalchemy import URL, make_url

if TYPE_CHECKING:
    from collections.abc import Iterator

POSTGRES_PORT = 5432


class Wire:
    """Hands bytes on between clients and a server, until it is cut; whoever comes then is connected anew."""

    def __init__(self, url: URL) -> None:
        self._server = (url.host or "127.0.0.1", url.port or POSTGRES_PORT)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: set[socket.socket] = set()
        self._lock = Lock()
        host, port = self._listening.getsockname()
        self.url = url.set(host=host, port=port).render_as_string(hide_password=False)
        """The URL of the same database by way of this."""
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection that there is."""
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Break every connection, and accept none any more."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:  # it is restarting
                    client.close()
                    continue
                with self._lock:
                    self._ends |= {client, server}
                Thread(target=self._hand_on, args=(client, server), daemon=True).start()
                Thread(target=self._hand_on, args=(server, client), daemon=True).start()

    def _hand_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError), source:
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):  # also where it was reset: the other end would wait for an answer that never comes
            sink.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._ends.discard(source)


@contextmanager
def wire_to(database_url: str) -> Iterator[Wire]:
    """Give a wire to the server of this database."""
    wire = Wire(make_url(database_url))
    try:
        yield wire
    finally:
        wire.close()
