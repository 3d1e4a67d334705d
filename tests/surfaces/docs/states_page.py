"""What does docs/states.md say? It is made from the table of moves: run this file to write it anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from postdate.domain.states import ACTIVE, MOVES, REASONS, TERMINAL, Cause, Move, Reason, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = Path(__file__).parents[3] / "docs" / "states.md"

_Q, _S, _F = Status.QUEUED, Status.SUBMITTED, Status.FAILED

SAID_BY: dict[tuple[Status, Cause], str] = {
    (_Q, Cause.CLAIM): "the engine, when the action is due",
    (_Q, Cause.CANCEL): "`cancel`, or an update of the view",
    (_Q, Cause.REPLACE): "`reschedule` or `post_now`: a new action takes its place",
    (_Q, Cause.WITHDRAW): "a producer whose source no longer asks for it",
    (_Q, Cause.DUPLICATE): "`confirm`, of a sibling: the same thing, target and occurrence",
    (_S, Cause.PUBLISHED): "the handler, by returning",
    (_S, Cause.NOT_SENT): "the handler, by raising `NotSent`; doubt, where the type is idempotent",
    (_S, Cause.DEFERRED): "the handler, by raising `Deferred`; quiet hours; a stop before the run began: not counted",
    (_S, Cause.NEVER_STARTED): "the engine, of a claim whose run surely never began: not counted as an attempt",
    (_S, Cause.REJECTED): "the handler, by raising `Rejected`",
    (_S, Cause.EXHAUSTED): "`NotSent` once more, with no automatic attempt left",
    (_S, Cause.UNCONFIRMED): "any other exception, a time-out, a lost lease, or raising `Unconfirmed`",
    (_S, Cause.EXPIRED): "the engine, of an action claimed after its `expires_at`: it is not run",
    (_S, Cause.SKIPPED): "the handler, by raising `Skipped`",
    (_S, Cause.DUPLICATE): "the engine, of an action claimed although a sibling went out, or may have: it is not run",
    (_F, Cause.RETRY): "`retry`",
    (_F, Cause.CONFIRM): "`confirm`",
    (_F, Cause.DISMISS): "`dismiss`",
}

MEANS: dict[Status, str] = {
    Status.QUEUED: "still to do; nobody has it in hand",
    Status.SUBMITTED: "claimed by a worker; the provider may or may not have been reached",
    Status.PUBLISHED: "it went out",
    Status.FAILED: "it did not go out, or nobody knows; a person may look",
    Status.CANCELLED: "it need not go out any more",
}

HEAD = """\
# States

An action is in one of five statuses. The table of moves, [`MOVES`](../src/postdate/domain/states.py), says what may
follow what, and nothing else may. This page is made from it by
[states_page.py](../tests/surfaces/docs/states_page.py), and a test compares the two.
"""


TAIL = """\
rules that were paused, changed or ended. `never_started` is for claims of which an engine did not hear whether
they were committed, and for runs that are handed over to other workers. What follows from each outcome of a handler is
decided in [`settle`](../src/postdate/domain/settle.py).
"""


def written() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_statuses(), *_chart(), *_moves(), *_reasons()])


def _statuses() -> Iterable[str]:
    yield from ("| status | means | kept in |", "|---|---|---|")
    for status in Status:
        kept = "`queue`" if status in ACTIVE else "`outcomes`"
        yield f"| `{status}` | {MEANS[status]} | {kept} |"
    terminal = ", ".join(f"`{status}`" for status in Status if status in TERMINAL)
    yield f"\nTerminal are {terminal}.\n"


def _chart() -> Iterable[str]:
    yield from ("## The chart\n", "```mermaid", "stateDiagram-v2", "    direction LR", "    [*] --> queued")
    for source in Status:
        for target in Status:
            causes = [move.cause for move in MOVES if move.source is source and move.target is target]
            if causes:
                yield f"    {source} --> {target}: {', '.join(dict.fromkeys(causes))}"
    yield "```\n"


def _moves() -> Iterable[str]:
    yield from ("## The moves\n", "| from | cause | to | reason afterwards | said by |", "|---|---|---|---|---|")
    for move in MOVES:
        said_by = SAID_BY[move.source, move.cause]
        yield f"| {_source(move)} | `{move.cause}` | `{move.target}` | {_listed(move.reasons)} | {said_by} |"
    yield ""


def _reasons() -> Iterable[str]:
    yield from ("## The reasons\n", "| status | reasons |", "|---|---|")
    for status, reasons in REASONS.items():
        yield f"| `{status}` | {_listed(reasons)} |"
    yield "\n`published` carries none. `drifted` and `orphaned` come from the reconciler, `rule_changed` from recurring"
    yield TAIL


def _source(move: Move) -> str:
    return f"`{move.source}`" if move.only_from is None else f"`{move.source}`, only `{move.only_from}`"


def _listed(reasons: Iterable[Reason]) -> str:
    chosen = frozenset(reasons)
    return ", ".join(f"`{reason}`" for reason in Reason if reason in chosen)


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
