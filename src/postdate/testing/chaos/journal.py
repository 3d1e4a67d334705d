"""Which runs did the workers begin, and how did they end?

Each worker appends lines to a file of its own. What is written stays, even if the worker is killed a moment later.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from postdate.clock import monotonic

if TYPE_CHECKING:
    from pathlib import Path

    from postdate.context import Context

CUT = "cut"
"""How a run ended whose handler was cut off, by its time-out or by a worker that stops."""


class _Line(StrEnum):
    BEGAN = "began"
    ENDED = "ended"
    ANSWERED = "answered"


@dataclass(kw_only=True)
class Run:
    """One call of a handler."""

    action: UUID
    action_type: str
    attempt: int
    worker: int
    """The process."""
    began: float
    """By the monotonic clock of the host, which all its processes share."""
    early: bool
    """Whether it began before the action was due, by the clock of its worker."""
    outcome: str | None = None
    """The outcome's name, `CUT`, or None where its worker never came to write it."""


@dataclass(kw_only=True)
class Journal:
    """What all workers have written so far."""

    runs: list[Run] = field(default_factory=list)
    """In the order in which they began."""
    answers: dict[UUID, set[str]] = field(default_factory=dict)
    """What providers said when they were asked about an action."""


class JournalWriter:
    """Writes one worker's lines."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.getpid()}.jsonl"

    def began(self, ctx: Context) -> str:
        """Note that a run begins, and return by which name it is to be ended."""
        run = uuid4().hex
        early = ctx.now < ctx.action.publish_at
        said = {"action": str(ctx.action.id), "action_type": ctx.action.action_type, "attempt": ctx.attempt}
        self._write(_Line.BEGAN, run=run, at=monotonic(), early=early, **said)
        return run

    def ended(self, run: str, outcome: str) -> None:
        """Note how a run ended."""
        self._write(_Line.ENDED, run=run, outcome=outcome)

    def answered(self, ctx: Context, answer: str) -> None:
        """Note what a provider said about an action."""
        self._write(_Line.ANSWERED, action=str(ctx.action.id), answer=answer)

    def _write(self, line: _Line, **said: object) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"line": line, **said}) + "\n")


def read_journal(folder: Path) -> Journal:
    """Return what is written, without a line that a worker was killed over."""
    journal, runs = Journal(), dict[str, Run]()
    for file in folder.glob("*.jsonl"):
        for text in file.read_text("utf-8").splitlines(keepends=True):
            if text.endswith("\n"):
                _take(json.loads(text), worker=int(file.stem), journal=journal, runs=runs)
    journal.runs = sorted(runs.values(), key=lambda run: run.began)
    return journal


def _take(said: dict[str, Any], *, worker: int, journal: Journal, runs: dict[str, Run]) -> None:
    match _Line(said["line"]):
        case _Line.BEGAN:
            runs[said["run"]] = Run(
                action=UUID(said["action"]),
                action_type=said["action_type"],
                attempt=said["attempt"],
                worker=worker,
                began=said["at"],
                early=said["early"],
            )
        case _Line.ENDED:
            runs[said["run"]].outcome = said["outcome"]
        case _Line.ANSWERED:
            journal.answers.setdefault(UUID(said["action"]), set()).add(said["answer"])
