"""Which connections to a mail server are kept for the next message?

Connecting costs more than handing over: a TCP and a TLS handshake, a greeting, signing in. So a connection that has
done its work waits a moment for the next message. Not for long, since servers close what is idle, and not for ever,
since some take only so many messages on one.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import aiosmtplib

LEAVE_SECONDS = 2.0
"""How long the server has to answer QUIT, which changes nothing any more."""


@dataclass(kw_only=True, eq=False)
class Connection:
    """A connection to the server, and how many messages were begun on it."""

    client: aiosmtplib.SMTP
    messages: int = 0

    @property
    def used(self) -> bool:
        """Whether it was kept from an earlier message: the server may have closed it since."""
        return self.messages > 0


@dataclass(frozen=True, kw_only=True)
class Connections:
    """The idle connections to one server, apart for each event loop. Sends may take and keep at the same time."""

    at_most: int = 10
    """How many wait; how many are in use is for the action type's `concurrency` to say."""
    idle_seconds: float = 15
    messages_each: int = 100
    _loops: dict[asyncio.AbstractEventLoop, _Here] = field(default_factory=dict, init=False, repr=False)

    def take(self) -> Connection | None:
        """Return the one that was used last, which is the least likely to be closed; None where none waits."""
        idle = self._here().idle
        while idle:
            connection, expiry = idle.popitem()
            expiry.cancel()
            if connection.client.is_connected:
                return connection
        return None

    def keep(self, connection: Connection) -> None:
        """Let it wait for the next message, or let go of it where it has served enough, or enough of them wait."""
        connection.messages += 1
        if not connection.client.is_connected:
            return
        here = self._here()
        if connection.messages >= self.messages_each or len(here.idle) >= self.at_most:
            here.leave(connection)
        else:
            loop = asyncio.get_running_loop()
            here.idle[connection] = loop.call_later(self.idle_seconds, here.expire, connection)

    async def close(self) -> None:
        """Let go of all that wait in this event loop. What is in use stays, and may be kept afterwards."""
        here = self._here()
        for connection in list(here.idle):
            here.expire(connection)
        await asyncio.gather(*here.leaving)

    def _here(self) -> _Here:
        for loop in list(self._loops):  # a copy, since each thread with a loop of its own comes by here
            if loop.is_closed():
                self._loops.pop(loop, None)
        return self._loops.setdefault(asyncio.get_running_loop(), _Here())


@dataclass(kw_only=True, eq=False)
class _Here:
    """The connections of one event loop: those that wait, and those that are saying goodbye."""

    idle: dict[Connection, asyncio.TimerHandle] = field(default_factory=dict)
    leaving: set[asyncio.Task[None]] = field(default_factory=set)

    def expire(self, connection: Connection) -> None:
        """Let go of one that waits."""
        self.idle.pop(connection).cancel()
        self.leave(connection)

    def leave(self, connection: Connection) -> None:
        """Say goodbye, while others go on."""
        task = asyncio.create_task(_goodbye(connection.client), name="smtp-goodbye")
        self.leaving.add(task)
        task.add_done_callback(self.leaving.discard)


async def _goodbye(client: aiosmtplib.SMTP) -> None:
    try:
        with suppress(aiosmtplib.SMTPException, OSError):
            await client.quit(timeout=LEAVE_SECONDS)
    finally:
        client.close()
