"""Where do the scripted servers listen, and how is it when nobody is there?"""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
FLOOD_BYTES = 32 * 1024 * 1024
"""How much a server says that does not end: far more than the buffers between two sockets hold."""
LONG_PATIENCE = 10.0
SHORT_PATIENCE = 0.5
"""Seconds that a case waits: short where the server is silent."""
UNKNOWN_HOST = "provider.invalid"
"""A name that no resolver finds (RFC 6761, 6.4)."""


@contextmanager
def refusing_port() -> Iterator[int]:
    """Give a port on which every connection is refused at once: it is taken, but nobody listens."""
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        yield taken.getsockname()[1]


@contextmanager
def unanswered_port() -> Iterator[int]:
    """Give a port on which no connection is ever taken up: the queue before it is full."""
    with ExitStack() as held:
        full = held.enter_context(socket.socket())
        full.bind((HOST, 0))
        full.listen(0)
        held.enter_context(socket.create_connection(full.getsockname()))
        yield full.getsockname()[1]
