"""What did a pass of the reconciler come to?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

import structlog

from postdate.domain.reconcile import Insert, Keep, Kept, Replace, Withdraw, thing_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from postdate.engine.fulfil import Planned
    from postdate.engine.wanted import Scope

_log = structlog.get_logger("postdate")

_FEW = 10
"""How many of the refused are told one by one."""


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """What a pass came to for one source in one workspace."""

    source: str
    workspace_id: UUID | None
    inserted: int = 0
    replaced: int = 0
    withdrawn: int = 0
    kept: Mapping[Kept, int] = field(default_factory=Counter)
    """What stays as it is, by reason."""
    clashed: int = 0
    """Where somebody else was faster; the next pass looks again."""
    refused: int = 0
    """What cannot be scheduled as its source says it."""
    refusals: tuple[str, ...] = ()
    """The first of these, in words."""
    failed: str | None = None
    """Why it was not done to the end. Nothing was withdrawn that the source had no chance to say."""


@dataclass(frozen=True, kw_only=True)
class ReconcileReport:
    """What a pass of the reconciler came to: a part for each source and workspace."""

    now: datetime
    parts: tuple[Reconciled, ...]

    @property
    def failed(self) -> tuple[Reconciled, ...]:
        """The parts that were not done to the end."""
        return tuple(part for part in self.parts if part.failed is not None)


@dataclass(kw_only=True)
class Tally:
    """Counts one part of a pass."""

    scope: Scope
    done: Counter[type] = field(default_factory=Counter)
    kept: Counter[Kept] = field(default_factory=Counter)
    clashed: int = 0
    refused: int = 0
    refusals: list[str] = field(default_factory=list)
    failed: str | None = None

    def add(self, planned: Iterable[Planned]) -> None:
        """Count steps and what came of them."""
        for each in planned:
            if each.refused is not None:
                self.refuse(f"{thing_of(each.step.key)}: {each.refused}")
            elif each.clashed:
                self.clashed += 1
            else:
                match each.step:
                    case Keep(reason=reason):
                        self.kept[reason] += 1
                    case Insert() | Replace() | Withdraw():
                        self.done[type(each.step)] += 1
                    case _:
                        assert_never(each.step)

    def refuse(self, why: str) -> None:
        """Count something that cannot be scheduled."""
        self.refused += 1
        if len(self.refusals) < _FEW:
            self.refusals.append(why)

    def report(self) -> Reconciled:
        """Return what it came to."""
        return Reconciled(
            source=self.scope.source,
            workspace_id=self.scope.workspace_id,
            inserted=self.done[Insert],
            replaced=self.done[Replace],
            withdrawn=self.done[Withdraw],
            kept=self.kept,
            clashed=self.clashed,
            refused=self.refused,
            refusals=tuple(self.refusals),
            failed=self.failed,
        )


def warn_of(part: Reconciled) -> None:
    """Log what a person should look at, where there is something."""
    if part.failed is not None or part.refused:
        workspace = None if part.workspace_id is None else str(part.workspace_id)
        what = {"source": part.source, "workspace": workspace, "failed": part.failed, "refused": part.refused}
        _log.warning("a source was not reconciled to the end", **what, refusals=list(part.refusals))
