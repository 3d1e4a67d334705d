"""How does a test put a network between an engine and its database that can fall silent?"""

from __future__ import annotations

import socket
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from sqlalchemy import make_url

if TYPE_CHECKING:
    from collections.abc import Iterator


class Gateway:
    """Passes bytes on in both directions, until it is told to keep them. It closes nothing, as a dead network."""

    def __init__(self, url: str) -> None:
        server = make_url(url)
        self._server = (str(server.host), server.port or 5432)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._open = Event()
        self._open.set()
        port = self._listening.getsockname()[1]
        self.url = server.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        """Keep what is sent from now on; connections are taken and never answered."""
        self._open.clear()

    def speak(self) -> None:
        """Pass on again, what was kept too."""
        self._open.set()

    def close(self) -> None:
        self._open.set()
        for each in (self._listening, *self._sockets):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                upstream = socket.create_connection(self._server)
            except OSError:
                return
            self._sockets += [client, upstream]
            for one, other in ((client, upstream), (upstream, client)):
                Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                self._open.wait()
                target.sendall(data)
            self._open.wait()
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


@contextmanager
def gateway(url: str) -> Iterator[Gateway]:
    """Give a gateway to the server of this URL."""
    opened = Gateway(url)
    yield opened
    opened.close()
