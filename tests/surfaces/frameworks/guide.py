"""How is the app on a page brought to life? Each block that names a file becomes that file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, TYPE_CHECKING

from tests.surfaces.docs.pages import ROOT, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 60.0
"""Seconds until something that should have happened counts as missing."""


def environment(**settings: str) -> dict[str, str]:
    """Return the environment of somebody who has set nothing up but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("POSTDATE_", "PYTEST_"))}
    tools = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return kept | {"PATH": tools, "PYTHONUNBUFFERED": "1"} | settings


def write(page: str, folder: Path) -> None:
    """Write the files of a page."""
    for block in blocks(ROOT / "docs" / page):
        language, _, name = block.language.partition(" ")
        if language == "python" and name:
            file = folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text)


def run(folder: Path, *command: str, **settings: str) -> str:
    """Run a command to its good end and return what it says; Python takes warnings for errors."""
    program = [sys.executable, "-W", "error", *command[1:]] if command[0] == "python" else list(command)
    ran = subprocess.run(
        program, cwd=folder, env=environment(**settings), capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def passes(folder: Path, *options: str) -> str:
    """Run the page's tests as in a project that has no plugin for coroutines."""
    return run(folder, "python", "-m", "pytest", "-q", "-p", "no:asyncio", "-p", "no:cacheprovider", *options)


class Process:
    """A server that goes on, and the lines that it writes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: Queue[str | None] = Queue()
        self._reading = Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reading.start()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the next line in which the pattern is found."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"{pattern!r} was not said within {PATIENCE} s: {self.said}") from None
            assert line is not None, f"ended without saying {pattern!r}: {self.said}"
            if found := re.search(pattern, line):
                return found

    def end(self) -> None:
        """Kill what is left of it, and read its last lines: the pipe may not be closed before."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self._reading.join(PATIENCE)

    def _read(self, out: IO[str]) -> None:
        for line in out:
            self.said.append(line)
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def started(folder: Path, *command: str, **settings: str) -> Iterator[Process]:
    """Run a command within the block; what is left of it ends with the block."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as popen:
        process = Process(popen)
        try:
            yield process
        finally:
            process.end()
