"""How are the rows of a file scheduled, however many there are?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from postdate.cli.rows import new_action
from postdate.domain.action import Action
from postdate.errors import Invalid, PostdateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from postdate.app import Postdate
    from postdate.cli.lines import Row
    from postdate.cli.rows import Defaults
    from postdate.verbs import NewAction

Results: TypeAlias = list[tuple[int, Action | PostdateError]]
"""The line of each row of a batch, and what became of it, in the order of the file."""

BATCH_ROWS = 500
"""How many rows share a transaction, at most."""
BATCH_BYTES = 4 * 1024 * 1024
"""From how many bytes on a batch takes no further row."""


@dataclass(kw_only=True)
class Tally:
    """How many rows have become actions, how many were refused, and where the last of them begins."""

    scheduled: int = 0
    refused: int = 0
    line: int = 0

    def count(self, results: Results) -> None:
        """Add what became of a batch."""
        refused = sum(isinstance(result, PostdateError) for _, result in results)
        self.refused += refused
        self.scheduled += len(results) - refused
        self.line = results[-1][0]

    def __str__(self) -> str:
        """Say it in a few words."""
        return f"{self.scheduled} scheduled, {self.refused} refused"


def schedule_rows(app: Postdate, rows: Iterable[Row], defaults: Defaults, *, actor: str) -> Iterator[Results]:
    """Yield what became of each batch, once it is committed."""
    for batch in batches(rows):
        yield _schedule_batch(app, batch, defaults, actor=actor)


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Group rows, so that neither their number nor their size grows beyond what one transaction should hold."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += row.size
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _schedule_batch(app: Postdate, batch: Sequence[Row], defaults: Defaults, *, actor: str) -> Results:
    news: dict[int, NewAction] = {}
    results: dict[int, Action | PostdateError] = {}
    for row in batch:
        try:
            news[row.line] = _asked(row, defaults)
        except Invalid as error:
            results[row.line] = error
    if news:
        answers = app.sync.schedule_many(news.values(), actor=actor)
        results.update(zip(news, answers, strict=True))
    return sorted(results.items())


def _asked(row: Row, defaults: Defaults) -> NewAction:
    if isinstance(row.given, Invalid):
        raise row.given
    return new_action(row.given, defaults)
