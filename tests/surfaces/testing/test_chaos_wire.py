"""Does the wire of the chaos harness pass on what happens at either end?"""

from __future__ import annotations

import socket
import struct

from sqlalchemy import make_url

from postdate.testing.chaos.wire import wire_to

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection, as the end of a process that had unread data does."""


def test_a_client_hears_of_a_server_that_resets_its_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        with wire_to(f"postgresql://{host}:{port}/any") as wire:
            here = make_url(wire.url)
            with socket.create_connection((str(here.host), here.port or 0), timeout=10) as client:
                behind, _ = server.accept()
                behind.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                behind.close()
                assert client.recv(1) == b""
