"""How are the arguments that several verbs share read?"""

from __future__ import annotations

from uuid import UUID

from postdate.domain import text
from postdate.errors import Invalid
from postdate.store.schema import SYSTEM_PROFILE

DEFAULT_ACTOR = "api"
"""Who acts where the caller names nobody."""

_LONGEST_UUID = 64
"""More characters than any way has to write one."""

MAX_LIMIT = 10_000
"""How many rows one call returns at most."""


def owner_id(value: UUID | str | None, *, field: str) -> UUID | None:
    """Return the id of an owner, or None where there is none. Raises `Invalid`."""
    return None if value is None else _uuid(value, field=field)


def workspace_uuid(value: UUID | str) -> UUID:
    """Return the id of a workspace. Raises `Invalid`."""
    return _uuid(value, field="workspace")


def action_uuid(value: UUID | str, *, field: str = "action") -> UUID:
    """Return the id of an action. Raises `Invalid`."""
    return _uuid(value, field=field)


def rule_uuid(value: UUID | str, *, field: str = "rule") -> UUID:
    """Return the id of a recurring rule. Raises `Invalid`."""
    return _uuid(value, field=field)


def user_id(value: UUID | str | None) -> UUID:
    """Return the owning profile: the system profile where no person asked."""
    return owner_id(value, field="user") or SYSTEM_PROFILE


def actor_name(value: str) -> str:
    """Return who acts, for the history. Raises `InvalidText`."""
    return text.name(value, field="actor")


def note_text(value: str | None) -> str | None:
    """Return why, in the words of who acts. Raises `InvalidText`."""
    return text.optional_name(value, field="note", limit=text.MAX_ERROR)


def page_limit(value: object) -> int:
    """Return how many rows are wanted. Raises `Invalid`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_LIMIT:
        raise Invalid(field="limit", rule=f"must be a whole number from 1 to {MAX_LIMIT}", value=value)
    return value


def _uuid(value: UUID | str, *, field: str) -> UUID:
    if isinstance(value, UUID):
        return value
    try:
        if len(value) <= _LONGEST_UUID:
            return UUID(value)
    except (ValueError, AttributeError, TypeError):
        pass
    raise Invalid(field=field, rule="must be a uuid", value=value)
