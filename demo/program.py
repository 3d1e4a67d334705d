"""How does the demo run the ordinary `postdate` program?"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Mapping

POSTDATE = str(Path(sys.executable).with_name("postdate"))
LOOK_AGAIN_SECONDS = 0.02
STOP_SECONDS = 40
"""How long a program may take to end when it is told to: `postdate serve` lets its runs end within 30 seconds."""


class CommandFailed(Exception):
    """A command ended with an error, or ended where it should have gone on; the text is what it said."""

    def __init__(self, arguments: tuple[str, ...], said: str) -> None:
        """Keep what was run and what it said."""
        super().__init__(f"postdate {' '.join(arguments)}\n{said}")


@dataclass(frozen=True, kw_only=True)
class Program:
    """`postdate` with the settings of the demo, which are also what one needs to try it by hand."""

    settings: Mapping[str, str]

    async def run(self, *arguments: str) -> str:
        """Run a command to its end and return what it printed. Raises `CommandFailed`."""
        async with self._started(arguments, PIPE) as process:
            printed, _ = await process.communicate()
        said = printed.decode(errors="replace")
        if process.returncode:
            raise CommandFailed(arguments, said)
        return said

    @asynccontextmanager
    async def running(self, *arguments: str, ready: str, log: Path) -> AsyncIterator[None]:
        """Run a command for as long as the block, which begins once the command has printed `ready`.

        What it prints goes to `log`. Raises `CommandFailed` out of the block if the command ends before it.
        """
        with log.open("wb") as output:
            async with self._started(arguments, output) as process:
                ended = asyncio.create_task(process.wait())
                try:
                    async with _at_most_as_long_as(ended):
                        while ready not in _text(log):  # noqa: ASYNC110 - a file rings no bell
                            await asyncio.sleep(LOOK_AGAIN_SECONDS)
                        yield
                except TimeoutError:
                    if not ended.done():
                        raise
                    raise CommandFailed(arguments, _text(log)) from None

    @asynccontextmanager
    async def _started(self, arguments: tuple[str, ...], output: int | IO[bytes]) -> AsyncIterator[Process]:
        """Start a process, and see that it has ended when the block is left."""
        process = await asyncio.create_subprocess_exec(
            POSTDATE,
            *arguments,
            env=os.environ | self.settings,
            stdout=output,
            stderr=STDOUT,
            start_new_session=True,  # the terminal's Ctrl-C is for the demo, which then ends it in good order
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                await _end(process)


@asynccontextmanager
async def _at_most_as_long_as(task: asyncio.Task[int]) -> AsyncIterator[None]:
    """Leave the block with `TimeoutError` when the task ends."""
    async with asyncio.timeout(None) as block:

        def leave(_: object) -> None:
            block.reschedule(0)

        task.add_done_callback(leave)
        try:
            yield
        finally:
            task.remove_done_callback(leave)


def _text(log: Path) -> str:
    return log.read_text(errors="replace")


async def _end(process: Process) -> None:
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
