"""What would be scheduled for what a source desires, and what of it cannot be?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from postdate.domain.action import RECONCILER, Request
from postdate.domain.moment import expiry, moment
from postdate.domain.reconcile import Replace
from postdate.errors import Invalid, PostdateError
from postdate.store.owners import PROFILE, WORKSPACE, hold_existing_owners
from postdate.store.schema import SYSTEM_PROFILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from postdate.domain.reconcile import Insert
    from postdate.errors import OwnerNotFound
    from postdate.kernel import Kernel
    from postdate.sources import Desired
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class Scope:
    """For which source and workspace a pass works, when, and whether for real."""

    source: str
    workspace_id: UUID | None
    now: datetime
    dry_run: bool = False

    @property
    def actor(self) -> str:
        """Who it is in an action's history."""
        return f"{RECONCILER}:{self.source}"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What steps ask for, by their keys."""

    requests: Mapping[str, Request]
    refused: Mapping[str, PostdateError]


def wanted(
    tx: Transaction,
    *,
    kernel: Kernel,
    scope: Scope,
    steps: Mapping[str, Insert | Replace],
    desired: Mapping[str, Desired],
    fingerprints: Mapping[str, str],
) -> Wanted:
    """Return the requests that these steps need, their owners held, as `schedule` would make them."""
    asking = _Asking(kernel, tx, scope)
    requests: dict[str, Request] = {}
    refused: dict[str, PostdateError] = {}
    for key, step in steps.items():
        try:
            requests[key] = asking.request(step, desired[key], fingerprints[key])
        except PostdateError as error:
            refused[key] = error
    if requests:
        users = {request.user_id for request in requests.values()}
        missing = hold_existing_owners(tx, workspaces={scope.workspace_id}, users=users)
        refused |= {key: lack for key, request in requests.items() if (lack := _ownerless(request, missing))}
    return Wanted(requests={key: one for key, one in requests.items() if key not in refused}, refused=refused)


def _ownerless(request: Request, missing: Mapping[tuple[str, UUID], OwnerNotFound]) -> OwnerNotFound | None:
    error = missing.get((PROFILE, request.user_id))
    return error if request.workspace_id is None else missing.get((WORKSPACE, request.workspace_id), error)


class _Asking:
    """Makes requests, and looks up the zone of each owner once."""

    def __init__(self, kernel: Kernel, tx: Transaction, scope: Scope) -> None:
        self._kernel = kernel
        self._tx = tx
        self._scope = scope
        self._zones: dict[UUID, str | None] = {}

    def request(self, step: Insert | Replace, desired: Desired, fingerprint: str) -> Request:
        """Return what is to be scheduled. Raises `Invalid` for what `schedule` would refuse."""
        scope, user = self._scope, _user(desired.user)
        action_type = self._kernel.registry[desired.action_type]
        when = moment(
            desired.at, tz=desired.tz, gap=desired.gap, fold=desired.fold, default_zone=lambda: self._zone(user)
        )
        made = Request(
            id=self._kernel.new_id(scope.now),
            workspace_id=scope.workspace_id,
            user_id=user,
            action_type=action_type.name,
            target_key=desired.target,
            payload=action_type.dump(desired.payload, target=desired.target),
            occurrence=desired.occurrence,
            publish_at=when.publish_at,
            intent=when.intent,
            expires_at=expiry(desired.expires_at, publish_at=when.publish_at),
            origin=RECONCILER,
            origin_id=scope.source,
            replaces_id=step.action_id if isinstance(step, Replace) else None,
            overlap_key=step.overlap_key if isinstance(step, Replace) else None,
            created_at=scope.now,
            fingerprint=fingerprint,
        )
        if made.key != step.key:
            rule = "is changed by the action type, so that it is another thing"
            raise Invalid(field="payload.thing_id", rule=rule, value=made.thing_id)
        return made

    def _zone(self, user: UUID) -> str | None:
        if user not in self._zones:
            workspace = self._scope.workspace_id
            self._zones[user] = self._kernel.default_zone(self._tx, workspace=workspace, user=user)
        return self._zones[user]


def _user(value: UUID | str | None) -> UUID:
    if value is None:
        return SYSTEM_PROFILE
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise Invalid(field="user", rule="must be a uuid", value=value) from None
