"""What does a served webhook call? A real HTTP server, in a thread of the test's process."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.surfaces.cli.program import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator


class Receiver:
    """Notes the path of each request; answers once `may_answer` is set, which it is at first."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.paths: Queue[str] = Queue()
        self.may_answer = Event()
        self.may_answer.set()

    def next_path(self) -> str:
        return self.paths.get(timeout=PATIENCE)


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            receiver.paths.put(self.path)
            receiver.may_answer.wait(PATIENCE)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # the usual 5 refuse some of a crowd, which then comes back half a minute later

    server = Server(("127.0.0.1", 0), Handler)
    receiver = Receiver(server.server_port)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
