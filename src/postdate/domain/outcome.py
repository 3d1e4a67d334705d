"""How can the run of an action end?

A handler returns (published) or raises one of the exceptions below; the engine turns whatever happens into
one `Outcome` value. What follows from it is decided by `postdate.domain.settle`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_never

from postdate.domain.instant import utc
from postdate.domain.retry import LONGEST_WAIT
from postdate.domain.text import MAX_NAME, cleaned
from postdate.errors import InvalidInstant


@dataclass(frozen=True, kw_only=True)
class Published:
    """It went out. `provider_id` is the outside system's id (P28)."""

    provider_id: str | None = None

    def __post_init__(self) -> None:
        """Clean the id, which comes from outside."""
        if self.provider_id is not None:
            object.__setattr__(self, "provider_id", cleaned(self.provider_id, limit=MAX_NAME))


class _Unhappy(Exception):
    """An outcome that a handler says by raising it."""

    def __init__(self, error: object = "") -> None:
        self.error = cleaned(error)
        super().__init__(self.error)


class NotSent(_Unhappy):
    """The provider was never reached, or answered that it took nothing: safe to try again.

    `retry_after` is the wait in seconds (or a timedelta) that the provider asked for.
    """

    def __init__(self, error: object = "", *, retry_after: float | timedelta | None = None) -> None:
        """Keep the error and the wait; one that is negative, not finite or no number counts as none."""
        super().__init__(error)
        self.retry_after = _wait(retry_after)


class Rejected(_Unhappy):
    """The provider refused for good."""


class Unconfirmed(_Unhappy):
    """It may have gone out: nobody knows until a person looks."""


class Skipped(_Unhappy):
    """It need not go out any more: unsubscribed, suppressed, superseded."""


class Deferred(_Unhappy):
    """Not now: run again at `until` (an aware datetime), with the attempt given back."""

    def __init__(self, until: datetime, error: object = "") -> None:
        """Keep the instant (UTC). Raises `InvalidInstant` for a naive one."""
        super().__init__(error)
        self.until = utc(until, field="until")


Outcome = Published | NotSent | Rejected | Unconfirmed | Skipped | Deferred


def sound(said: Outcome) -> Outcome:
    """Return the same as a value of our own: a handler's subclass may keep no error, one that is no text, or raise.

    A `Deferred` that names no instant is as good as `NotSent`.
    """
    if type(said) is Published:
        return said
    words = _asked(said, "error", otherwise=said)
    match said:
        case Published():
            return Published(provider_id=_asked(said, "provider_id"))
        case NotSent():
            return NotSent(words, retry_after=_asked(said, "retry_after"))
        case Rejected():
            return Rejected(words)
        case Unconfirmed():
            return Unconfirmed(words)
        case Skipped():
            return Skipped(words)
        case Deferred():
            try:
                return Deferred(_asked(said, "until"), words)
            except InvalidInstant:
                return NotSent(words)
        case _:
            assert_never(said)


def _asked(said: Outcome, name: str, *, otherwise: object = None) -> Any:
    try:
        return getattr(said, name, otherwise)
    except Exception:  # noqa: BLE001 - a property of the host's, which may raise anything
        return otherwise


def _wait(value: object) -> timedelta | None:
    """Return the wait, or None for what is none: a handler must not fail over a provider's odd header."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
        return None
    return timedelta(seconds=min(seconds, LONGEST_WAIT.total_seconds()))
