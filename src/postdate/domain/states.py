"""In which states can an action be, and which moves lead from one to another?

`MOVES` is the only statement of it: the chart in the docs and the cases of the conformance suite, which holds the
verbs, the engine and the view's triggers to it, are made from this table. Every other pair is refused (P34).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The five statuses of an action (P18)."""

    QUEUED = "queued"
    SUBMITTED = "submitted"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def active(self) -> bool:
        """Whether the action is still to do."""
        return self in ACTIVE


ACTIVE = frozenset({Status.QUEUED, Status.SUBMITTED})
TERMINAL = frozenset({Status.PUBLISHED, Status.FAILED, Status.CANCELLED})


class Reason(StrEnum):
    """Why an action ended as it did, or in no other way."""

    # failed
    REJECTED = "rejected"
    EXHAUSTED = "exhausted"
    UNCONFIRMED = "unconfirmed"
    EXPIRED = "expired"
    DISMISSED = "dismissed"
    # cancelled
    USER = "user"
    SKIPPED = "skipped"
    RESCHEDULED = "rescheduled"
    DRIFTED = "drifted"
    ORPHANED = "orphaned"
    DUPLICATE = "duplicate"
    RULE_CHANGED = "rule_changed"


REASONS: dict[Status, frozenset[Reason]] = {
    Status.FAILED: frozenset({Reason.REJECTED, Reason.EXHAUSTED, Reason.UNCONFIRMED, Reason.EXPIRED, Reason.DISMISSED}),
    Status.CANCELLED: frozenset(
        {
            Reason.USER,
            Reason.SKIPPED,
            Reason.RESCHEDULED,
            Reason.DRIFTED,
            Reason.ORPHANED,
            Reason.DUPLICATE,
            Reason.RULE_CHANGED,
        }
    ),
}
"""The reasons each terminal status may carry; published carries none."""


class Cause(StrEnum):
    """What moves an action: a verb, an outcome, or the engine."""

    CLAIM = "claim"
    PUBLISHED = "published"
    NOT_SENT = "not_sent"
    DEFERRED = "deferred"
    NEVER_STARTED = "never_started"
    REJECTED = "rejected"
    EXHAUSTED = "exhausted"
    UNCONFIRMED = "unconfirmed"
    EXPIRED = "expired"
    SKIPPED = "skipped"
    DUPLICATE = "duplicate"
    CANCEL = "cancel"
    REPLACE = "replace"
    WITHDRAW = "withdraw"
    RETRY = "retry"
    CONFIRM = "confirm"
    DISMISS = "dismiss"


@dataclass(frozen=True, kw_only=True)
class Move:
    """One allowed step from a status to a status."""

    source: Status
    cause: Cause
    target: Status
    reasons: frozenset[Reason] = frozenset()
    """The reasons the action may carry afterwards; empty where it carries none."""
    only_from: Reason | None = None
    """The reason the action must carry before, where not every one will do."""


def _move(source: Status, cause: Cause, target: Status, *reasons: Reason, only_from: Reason | None = None) -> Move:
    return Move(source=source, cause=cause, target=target, reasons=frozenset(reasons), only_from=only_from)


_Q, _S, _P, _F, _C = Status.QUEUED, Status.SUBMITTED, Status.PUBLISHED, Status.FAILED, Status.CANCELLED

MOVES: tuple[Move, ...] = (
    _move(_Q, Cause.CLAIM, _S),
    _move(_Q, Cause.CANCEL, _C, Reason.USER),
    _move(_Q, Cause.REPLACE, _C, Reason.RESCHEDULED, Reason.DRIFTED, Reason.RULE_CHANGED),
    _move(_Q, Cause.WITHDRAW, _C, Reason.ORPHANED, Reason.RULE_CHANGED),
    _move(_Q, Cause.DUPLICATE, _C, Reason.DUPLICATE),
    _move(_S, Cause.PUBLISHED, _P),
    _move(_S, Cause.NOT_SENT, _Q),
    _move(_S, Cause.DEFERRED, _Q),
    _move(_S, Cause.NEVER_STARTED, _Q),
    _move(_S, Cause.REJECTED, _F, Reason.REJECTED),
    _move(_S, Cause.EXHAUSTED, _F, Reason.EXHAUSTED),
    _move(_S, Cause.UNCONFIRMED, _F, Reason.UNCONFIRMED),
    _move(_S, Cause.EXPIRED, _F, Reason.EXPIRED),
    _move(_S, Cause.SKIPPED, _C, Reason.SKIPPED),
    _move(_S, Cause.DUPLICATE, _C, Reason.DUPLICATE),
    _move(_F, Cause.RETRY, _Q),
    _move(_F, Cause.CONFIRM, _P, only_from=Reason.UNCONFIRMED),
    _move(_F, Cause.DISMISS, _F, Reason.DISMISSED, only_from=Reason.UNCONFIRMED),
)


def causes(source: Status, target: Status) -> frozenset[Cause]:
    """Return what may move an action from `source` to `target`; empty when nothing may."""
    return frozenset(move.cause for move in MOVES if move.source is source and move.target is target)


def moves_from(status: Status, reason: Reason | None = None) -> tuple[Move, ...]:
    """Return the moves open to an action that stands at `status` with `reason`."""
    return tuple(move for move in MOVES if move.source is status and move.only_from in {None, reason})
