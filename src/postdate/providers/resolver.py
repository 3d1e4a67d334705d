"""How is the system's resolver asked, without a slow answer to one keeping others waiting?

It knows no time limit and cannot be cut off: who schedules webhooks to names whose servers never answer would soon
hold all of the few threads that asyncio has for it, and names of everybody else would go unresolved. So each question
has a daemon thread of its own, up to a bound.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_ONCE = 200
"""How many questions may be open in this process: as many as connections, so that what has been given up counts too."""


@dataclass(frozen=True, kw_only=True)
class SystemResolver:
    """Asks the system's resolver, which puts the best address first (RFC 6724)."""

    at_once: int = AT_ONCE
    _open: BoundedSemaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Count from none."""
        object.__setattr__(self, "_open", BoundedSemaphore(self.at_once))

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the host's addresses. Raises OSError where there are none, or where too many questions are open."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()

        def deliver(found: list[Any] | Exception) -> None:
            if answer.done():  # nobody waits any more
                return
            if isinstance(found, Exception):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def ask() -> None:
            try:
                found = _asked(host, port)
            finally:
                self._open.release()
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(deliver, found)

        if not self._open.acquire(blocking=False):
            raise OSError(f"{self.at_once} names are being resolved already")
        try:
            Thread(target=ask, name="postdate-resolver", daemon=True).start()
        except RuntimeError as error:  # no more threads are to be had
            self._open.release()
            raise OSError(str(error)) from error
        return [str(sockaddr[0]) for *_, sockaddr in await answer]


system_resolve = SystemResolver()


def _asked(host: str, port: int) -> list[Any] | Exception:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return error
