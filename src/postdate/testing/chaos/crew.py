"""Who is at work, and what is done to them?"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from postdate.testing.chaos.faults import Fault
from postdate.testing.chaos.worker import AWAY

if TYPE_CHECKING:
    from pathlib import Path

    from postdate.testing.chaos.worker import Orders

_PATIENCE = 60.0
"""Seconds that a worker may take to end: longer than any call of the database's may last."""
_SAID = 2000
_EXPECTED = {0, AWAY, -signal.SIGKILL, -signal.SIGTERM}
"""How workers may end; by SIGTERM where they had not even begun."""


@dataclass
class Crew:
    """The worker processes of one run, and those that there have been."""

    orders: Orders
    folder: Path
    hurt: dict[int, set[Fault]] = field(default_factory=lambda: defaultdict(set))
    """What was done to which process."""
    failed: list[str] = field(default_factory=list)
    """What the workers said that ended by themselves."""
    _processes: dict[int, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self) -> int:
        """Start a worker and return its process id."""
        process = self._started(self.orders)
        self._processes[process.pid] = process
        return process.pid

    def kill(self, worker: int) -> None:
        """Kill a worker and start another, as whoever supervises them would."""
        self.hurt[worker].add(Fault.KILL)
        self._processes[worker].kill()
        self._processes.pop(worker).communicate()
        self.start()

    def stop(self, worker: int) -> None:
        """Let a worker stand still."""
        self.hurt[worker].add(Fault.STOP)
        self._processes[worker].send_signal(signal.SIGSTOP)

    def go_on(self, worker: int) -> None:
        """Let it go on as if nothing had been."""
        self._processes[worker].send_signal(signal.SIGCONT)

    def step_clock(self, worker: int, seconds: int) -> None:
        """Step a worker's clock."""
        self.hurt[worker].add(Fault.CLOCK_STEP)
        stdin = self._processes[worker].stdin
        assert stdin
        stdin.write(f"step {seconds}\n")
        stdin.flush()

    def tend(self) -> None:
        """Start another worker for each that has ended by itself."""
        for worker, process in list(self._processes.items()):
            if process.poll() is not None:
                self._note_failure(self._processes.pop(worker))
                self.start()

    def somebody(self, worker: int) -> int:
        """Return the worker, or another where it is gone."""
        self.tend()
        return worker if worker in self._processes else next(iter(self._processes))

    def dismiss(self) -> None:
        """Let all of them end, by SIGTERM, and by force where that does not help."""
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for worker, process in self._processes.items():
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.failed.append(f"worker {worker} did not end within {_PATIENCE:g} s of SIGTERM")
                self.hurt[worker].add(Fault.KILL)
                process.kill()
                process.wait()
            self._note_failure(process)
        self._processes.clear()

    def finish(self, aftermath: Orders) -> None:
        """Let one more process see everything to its end."""
        process = self._started(aftermath)
        process.wait()
        self._note_failure(process)

    def end(self) -> None:
        """Leave no process behind."""
        for process in self._processes.values():
            process.kill()
            process.communicate()

    def _started(self, orders: Orders) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "postdate.testing.chaos.worker", orders.text()]
        with (self.folder / "stderr").open("a", encoding="utf-8") as stderr:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stderr, stderr=stderr, text=True)

    def _note_failure(self, process: subprocess.Popen[str]) -> None:
        if process.stdin:
            process.stdin.close()
        if process.returncode not in _EXPECTED:
            said = (self.folder / "stderr").read_text("utf-8", errors="replace")[-_SAID:]
            self.failed.append(f"worker {process.pid} ended with code {process.returncode}: {said}")
