"""Who is told, inside the transaction that settles an action, what became of it?

An action type's `settled(connection, actions)` hook. It runs in a savepoint: where it raises for a set, it is called
again for each action alone, and what it still refuses is settled without it; an event of cause `hook_failed` says so.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog
from sqlalchemy.exc import DBAPIError

from postdate.domain.action import ENGINE
from postdate.domain.text import cleaned
from postdate.errors import Misconfigured
from postdate.store.events import append_events, event_row
from postdate.store.passing import passes
from postdate.store.reading import find_actions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection

    from postdate.domain.action import Action
    from postdate.registry import ActionType, Registry
    from postdate.store.transaction import Transaction

_log = structlog.get_logger("postdate")

HOOK_FAILED = "hook_failed"
"""The cause of the event that tells of a hook that raised."""


def tell_settled(
    tx: Transaction, types: Registry | Mapping[str, ActionType], ended: Mapping[UUID, str], *, now: datetime
) -> None:
    """Tell the hooks of these actions' types (`ended` gives the type of each) how the actions stand now.

    Raises what says that the database is away, so that the whole settle is tried again.
    """
    by_type: defaultdict[str, list[UUID]] = defaultdict(list)
    for action_id, name in ended.items():
        known = types.get(name)
        if known is not None and known.settled is not None:
            by_type[name].append(action_id)
    for name, action_ids in by_type.items():
        found = find_actions(tx, action_ids)
        actions = [found[action_id] for action_id in action_ids if action_id in found]
        _tell(tx, types[name], actions, now=now)


def _tell(tx: Transaction, action_type: ActionType, actions: Sequence[Action], *, now: datetime) -> None:
    error = _call(tx, action_type, actions)
    if error is not None and len(actions) > 1:
        for action in actions:
            _tell(tx, action_type, [action], now=now)
    elif error is not None:
        (action,) = actions
        _log.warning("a settled hook failed", action=str(action.id), action_type=action_type.name, error=error)
        failed = event_row(action.id, action.workspace_id, at=now, cause=HOOK_FAILED, actor=ENGINE, error=error)
        append_events(tx, [failed])


def _call(tx: Transaction, action_type: ActionType, actions: Sequence[Action]) -> str | None:
    """Call the hook and return the error it raised, with what it did undone."""
    if action_type.settled is None or not actions:
        return None
    try:
        # the inner one may not end well, where the hook caught an error that PostgreSQL ends a transaction for
        with tx.savepoint(), tx.savepoint(), _kept_open(tx.connection):
            action_type.settled(tx.connection, actions)
    except Exception as error:
        if isinstance(error, DBAPIError) and passes(error):
            raise
        return cleaned(f"{type(error).__name__}: {error}")
    return None


@contextmanager
def _kept_open(connection: Connection) -> Iterator[None]:
    """Refuse what would end the transaction of the settle: commit, rollback and close of the hook's connection."""

    def refuse() -> None:
        raise Misconfigured("a settled hook must not end the transaction that it is called in")

    names = {"commit", "rollback", "close"} - vars(connection).keys()  # a hook may call verbs, and so further hooks
    for name in names:
        setattr(connection, name, refuse)
    try:
        yield
    finally:
        for name in names:
            delattr(connection, name)
