"""How is the installed script run in a process of its own, and how does one wait for what it says?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping

SCRIPT = str(Path(sys.executable).with_name("postdate"))
PATIENCE = 60.0
"""Seconds until something that should have happened counts as missing."""


class Running:
    """A process whose stderr is read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: Queue[str | None] = Queue()
        self._reader = Thread(target=self._read, args=(process.stderr,), daemon=True)
        self._reader.start()

    def wait_for(self, *events: str) -> dict[str, Any]:
        """Return the next JSON line that tells of one of these."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"{events} was not told within {PATIENCE} s: {self.said}") from None
            assert line is not None, f"ended without telling of {events}: {self.said}"
            told: dict[str, Any] = json.loads(line)
            if told["event"] in events:
                return told

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for the end and return the exit code; `said` is then complete."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def _read(self, stderr: IO[bytes]) -> None:
        for line in stderr:
            self.said.append(line.decode())
            self._lines.put(line.decode())
        self._lines.put(None)


class Program:
    """Starts `postdate` in a folder, on a database; ends what is still running with the test."""

    def __init__(self, database_url: str, *, folder: Path) -> None:
        others = {name: value for name, value in os.environ.items() if not name.startswith("POSTDATE_")}
        self.environment = others | {"POSTDATE_DATABASE_URL": database_url}
        self._folder = folder
        self._started: list[Running] = []

    def start(
        self, *arguments: str, stdout: int = subprocess.DEVNULL, settings: Mapping[str, str] | None = None
    ) -> Running:
        """Start a command that goes on."""
        process = subprocess.Popen(
            [SCRIPT, *arguments],
            env=self.environment | dict(settings or {}),
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
        running = Running(process)
        self._started.append(running)
        return running

    def serving(self, *arguments: str, **settings: str) -> Running:
        """Start `postdate serve` and wait until it says that it serves."""
        running = self.start("serve", *arguments, settings=settings)
        running.wait_for("serving")
        return running

    def kill(self) -> None:
        for running in self._started:
            running.process.kill()
            running.ended()
            for pipe in (running.process.stdin, running.process.stdout, running.process.stderr):
                if pipe is not None:
                    pipe.close()
