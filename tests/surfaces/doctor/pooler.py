"""What does a pooler in transaction mode do with notifications? It drops them; this one drops nothing else."""

from __future__ import annotations

import socket
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING

from sqlalchemy import make_url

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTIFICATION = b"A"
"""The type byte of NotificationResponse (PostgreSQL's protocol, message formats)."""
LENGTH = 4


@contextmanager
def pooled(database_url: str) -> Iterator[str]:
    """Give a URL of the same database that leads past such a pooler."""
    url = make_url(database_url)
    server = (str(url.host), url.port or 5432)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=_accept, args=(listening, server), daemon=True).start()
        plain = {"sslmode": "disable", "gssencmode": "disable"}  # so that every message can be read
        host, port = listening.getsockname()
        yield url.set(host=host, port=port).update_query_dict(plain).render_as_string(hide_password=False)
        listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, server: tuple[str, int]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            upstream = socket.create_connection(server)
            Thread(target=_copy, args=(client, upstream), daemon=True).start()
            Thread(target=_copy_but_notifications, args=(upstream, client), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError), source:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_RDWR)


def _copy_but_notifications(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError), source, source.makefile("rb") as messages:
        while kind := messages.read(1):
            length = messages.read(LENGTH)
            body = messages.read(int.from_bytes(length) - LENGTH)
            if kind != NOTIFICATION:
                sink.sendall(kind + length + body)
        sink.shutdown(socket.SHUT_RDWR)
