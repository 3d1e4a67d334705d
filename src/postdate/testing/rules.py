"""Which outcomes may a run end in, by how far the request had come?

The two promises stand here: what may have been taken is never `NotSent`, and nothing is `Published` without an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from postdate.domain.outcome import Deferred, NotSent, Published, Rejected, Skipped, Unconfirmed
from postdate.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

Situation = TypeVar("Situation", bound=StrEnum)
OutcomeType: TypeAlias = (
    type[Published] | type[NotSent] | type[Rejected] | type[Unconfirmed] | type[Skipped] | type[Deferred]
)


def _these(*outcomes: OutcomeType) -> frozenset[OutcomeType]:
    return frozenset(outcomes)


UNREACHED = _these(NotSent, Rejected, Unconfirmed, Skipped, Deferred)
"""Nothing was written: anything but `Published`."""
ANSWERED = UNREACHED
"""The server answered, and not with a yes: anything but `Published`."""
DOUBTFUL = _these(Unconfirmed)
"""The request was written, and no answer came that could be read."""
BROKEN = _these(Unconfirmed, Rejected)
"""The server answered that something broke on its side: it may have taken the request before."""
TAKEN = _these(Unconfirmed, Published)
"""The server said yes, but not what else it had to say: some providers need no more than the status."""
BEGUN = _these(Unconfirmed, NotSent)
"""The request was announced and not yet written, which some providers no longer tell apart."""


@dataclass(frozen=True)
class Rule:
    """What is expected in a situation, and what a provider may declare instead."""

    expected: OutcomeType
    allowed: frozenset[OutcomeType]


def expected(
    situation: Situation, rules: Mapping[Situation, Rule], differs: Mapping[Situation, OutcomeType]
) -> OutcomeType:
    """Return which outcome the provider says to expect."""
    return differs.get(situation, rules[situation].expected)


def check_differences(rules: Mapping[Situation, Rule], differs: Mapping[Situation, OutcomeType]) -> None:
    """Raise `Invalid` where a provider declares an outcome that breaks a promise, or one that is expected anyway."""
    for situation, declared in differs.items():
        if declared not in rules[situation].allowed:
            names = ", ".join(sorted(each.__name__ for each in rules[situation].allowed))
            rule = f"may only be {names} when {situation}"
            raise Invalid(field="differs", rule=rule, value=declared.__name__)
        if declared is rules[situation].expected:
            raise Invalid(field="differs", rule=f"need not say what is expected anyway when {situation}")
