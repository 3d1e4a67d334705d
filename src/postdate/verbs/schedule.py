"""How is an action scheduled?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sqlalchemy.exc import DataError, IntegrityError

from postdate.errors import Invalid, PostdateError
from postdate.kernel import Unbegun
from postdate.verbs.intake import Intake, NewAction

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from pydantic import BaseModel

    from postdate.domain.action import Action
    from postdate.domain.intent import ZonePolicy
    from postdate.domain.walltime import Fold, Gap
    from postdate.kernel import Connectable, Kernel


def schedule(
    kernel: Kernel,
    action_type: str,
    payload: BaseModel | Mapping[str, object],
    *,
    at: datetime | str,
    tz: str | None = None,
    gap: Gap = "forward",
    fold: Fold = "first",
    zone_policy: ZonePolicy | None = None,
    target: str | None = None,
    workspace: UUID | str | None = None,
    user: UUID | str | None = None,
    occurrence: str = "",
    expires_at: datetime | str | None = None,
    overlap_key: str | None = None,
    idempotency_key: str | None = None,
    actor: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> Action:
    """Schedule one action and return it.

    `at` is an aware datetime, ISO 8601 text with an offset, or a wall time read in `tz`, else in the zone of the
    workspace or the user (P76). `zone_policy` says what becomes of a wall time that comes to mean another instant: else
    its action type does, else the setting. With `connection`, the action exists if and only if the caller's transaction
    commits. A repeated `idempotency_key` answers the action that the first call made.

    Raises `Invalid` (naming the field), `OwnerNotFound`, `AlreadyScheduled` (P26), `AlreadyPublished` (P64),
    `OverlapTaken` or `IdempotencyConflict`.
    """
    new = NewAction(
        action_type=action_type,
        payload=payload,
        at=at,
        tz=tz,
        gap=gap,
        fold=fold,
        zone_policy=zone_policy,
        target=target,
        workspace=workspace,
        user=user,
        occurrence=occurrence,
        expires_at=expires_at,
        overlap_key=overlap_key,
        idempotency_key=idempotency_key,
    )
    if connection is None or isinstance(connection, Unbegun):
        try:
            return _scheduled(kernel, new, actor, connection, in_savepoint=False)
        except (IntegrityError, DataError):  # in a transaction of our own, which can as well be begun anew
            pass
    return _scheduled(kernel, new, actor, connection, in_savepoint=True)


def _scheduled(
    kernel: Kernel, new: NewAction, actor: str | None, connection: Connectable | Unbegun | None, *, in_savepoint: bool
) -> Action:
    with kernel.transaction(connection) as tx:
        (result,) = Intake(kernel, tx, actor, in_savepoint=in_savepoint).run([new])
        if isinstance(result, PostdateError):
            raise result
        return result


def schedule_many(
    kernel: Kernel,
    actions: Iterable[NewAction],
    *,
    actor: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> list[Action | PostdateError]:
    """Schedule many actions in one transaction and return, in their order, each action or the error it met.

    One that is refused drops out alone (P55), as does what is no `NewAction`. Raises `Invalid` for what can hold none.
    """
    news = _listed(actions)  # before the transaction: an iterable may take its time, or call verbs itself
    with kernel.transaction(connection) as tx:
        return Intake(kernel, tx, actor).run(news)


def _listed(actions: object) -> list[NewAction]:
    if isinstance(actions, str | bytes | Mapping) or not isinstance(actions, Iterable):
        raise Invalid(field="actions", rule="must be NewAction values, one after the other", value=actions)
    return list(actions)
