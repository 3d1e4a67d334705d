"""How can a mail server behave?

`ScriptedSmtp` is a real server on the loopback interface. It takes mail politely unless its script says otherwise, and
then it does what no decent server does: it answers nonsense, falls silent, or cuts the connection.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Self

from postdate.testing.loopback import FLOOD_BYTES, HOST

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence
    from email.message import EmailMessage

MAX_MESSAGE = 16 * 1024 * 1024

_CHUNK = b"250-on and on\r\n" * 4096


class Ending(StrEnum):
    """How a dialogue ends where a script says so instead of giving a reply."""

    CUT = "cut"
    """The connection is closed."""
    HALF = "half"
    """It is closed in the middle of a reply."""
    SILENCE = "silence"
    """Nothing is ever said again."""
    FLOOD = "flood"
    """The reply goes on and on, up to `FLOOD_BYTES`."""


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A message that the server took, and its envelope."""

    sender: str
    recipients: Sequence[str]
    content: bytes

    def message(self) -> EmailMessage:
        """Return it as a mail reader understands it."""
        return message_from_bytes(self.content, policy=default)


@dataclass
class ScriptedSmtp:
    """Replies to each command, or to a recipient's address, from `script`; all else is `250 OK`.

    The steps are `greeting`, the commands (`EHLO`, `MAIL`, `RCPT`, `RSET`, `DATA`, `QUIT`), `message`, and addresses. A
    step may have several replies, given in turn; the last of them stays. Use it as an async context manager: it listens
    on a free port of 127.0.0.1.
    """

    script: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    """The steps in the order in which they came, over all connections."""
    letters: list[Letter] = field(default_factory=list)
    connections: int = 0
    host: str = HOST
    port: int = 0
    """Where it listens, once it does."""
    flooded: int = 0

    polite: ClassVar = {"greeting": "220 mx.test", "DATA": "354 go on", "QUIT": "221 bye"}

    async def start(self, tls: ssl.SSLContext | None = None) -> Self:
        """Begin to listen, over TLS from the first byte where a context is given."""
        self.silent = asyncio.Event()
        """Set once the server has fallen silent."""
        self.left = asyncio.Event()
        """Set once a connection has ended."""
        self._given: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=tls, limit=MAX_MESSAGE)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def stop(self) -> None:
        """Close everything."""
        self._server.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        """Close every connection without a word, as a server does that is restarted; go on listening."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        """Close everything."""
        await self.stop()

    def reply(self, step: str) -> str:
        """Return what the script says to a step, and turn to its next reply."""
        scripted = self.script.get(step, self.polite.get(step, "250 OK"))
        if isinstance(scripted, str):
            return scripted
        turn = self._given.get(step, 0)
        self._given[step] = turn + 1
        return scripted[min(turn, len(scripted) - 1)]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError, OSError):
            await _Dialogue(self, reader, writer).held()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self.left.set()


@dataclass
class _Dialogue:
    """One connection."""

    server: ScriptedSmtp
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    sender: str = ""
    recipients: list[str] = field(default_factory=list)

    async def held(self) -> None:
        """Speak until one side ends it."""
        reply = self.server.reply("greeting")
        while await self._said(reply):
            line = (await self.reader.readuntil(b"\r\n")).decode("utf-8", "replace").strip()
            reply = await self._understood(line)
            if line.upper() == "QUIT":
                await self._said(reply)
                return

    async def _understood(self, line: str) -> str:
        step = line.partition(" ")[0].upper()
        self.server.seen.append(step)
        reply = self.server.reply(step)
        match step:
            case "MAIL":
                self.sender, self.recipients = _address(line), []
            case "RCPT":
                return self._recipient(_address(line), reply)
            case "RSET":
                self.sender, self.recipients = "", []
            case "DATA" if reply.startswith("354") and await self._said(reply):
                return await self._message()
        return reply

    def _recipient(self, address: str, reply: str) -> str:
        own = self.server.reply(address)
        reply = reply if own == "250 OK" else own
        if reply.startswith("25"):
            self.recipients.append(address)
        return reply

    async def _message(self) -> str:
        content = (await self.reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n")
        self.server.seen.append("message")
        reply = self.server.reply("message")
        if reply.startswith("250"):
            taken = content.replace(b"\r\n..", b"\r\n.").removeprefix(b".")
            letter = Letter(sender=self.sender, recipients=tuple(self.recipients), content=taken)
            self.server.letters.append(letter)
        return reply

    async def _said(self, reply: str) -> bool:
        """Send a reply; say whether the dialogue goes on."""
        match reply:
            case Ending.CUT:
                return False
            case Ending.SILENCE:
                self.server.silent.set()
                self.server.seen += (await self.reader.read()).decode("utf-8", "replace").split()
                return False
            case Ending.HALF:
                self.writer.write(b"25")
            case Ending.FLOOD:
                await self._flood()
            case _:
                self.writer.write(f"{reply}\r\n".encode())
        await self.writer.drain()
        return reply not in {Ending.HALF, Ending.FLOOD}

    async def _flood(self) -> None:
        while self.server.flooded < FLOOD_BYTES:
            self.writer.write(_CHUNK)
            await self.writer.drain()
            self.server.flooded += len(_CHUNK)


def _address(line: str) -> str:
    return line.partition("<")[2].partition(">")[0]
