"""Which of the new actions become rows of the queue, and what do the others meet?"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.domain import text
from postdate.domain.action import SCHEDULED, Action, Request, asked
from postdate.domain.moment import expiry, moment
from postdate.domain.states import Status
from postdate.errors import (
    AlreadyPublished,
    AlreadyScheduled,
    IdempotencyConflict,
    Invalid,
    OverlapTaken,
    PostdateError,
)
from postdate.store.actions import active_keys, guarded_keys, insert_actions, overlap_holder
from postdate.store.events import append_events, event_row
from postdate.store.idempotency import Entry, find_keys, release_keys, take_keys
from postdate.store.owners import PROFILE, WORKSPACE, hold_existing_owners
from postdate.store.reading import find_actions
from postdate.verbs.arguments import owner_id, user_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from pydantic import BaseModel

    from postdate.domain.intent import ZonePolicy
    from postdate.domain.walltime import Fold, Gap
    from postdate.kernel import Kernel
    from postdate.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class NewAction:
    """What to schedule: the arguments of `schedule`, as a value for `schedule_many`."""

    action_type: str
    payload: BaseModel | Mapping[str, object]
    at: datetime | str
    tz: str | None = None
    gap: Gap = "forward"
    fold: Fold = "first"
    zone_policy: ZonePolicy | None = None
    target: str | None = None
    workspace: UUID | str | None = None
    user: UUID | str | None = None
    occurrence: str = ""
    expires_at: datetime | str | None = None
    overlap_key: str | None = None
    idempotency_key: str | None = None


class Intake:
    """One pass of new actions from the caller to the queue. `results` fills up as they are decided."""

    def __init__(self, kernel: Kernel, tx: Transaction, actor: str | None, *, in_savepoint: bool = True) -> None:
        self.kernel = kernel
        self.tx = tx
        self.actor = text.optional_name(actor, field="actor")
        self.in_savepoint = in_savepoint
        self.now = kernel.now(tx)
        self.results: dict[int, Action | PostdateError] = {}
        self._zones: dict[tuple[UUID | None, UUID], str | None] = {}

    def run(self, news: Sequence[NewAction]) -> list[Action | PostdateError]:
        """Return, in their order, the action that came of each, or the error that it met."""
        requests = self._requests(news)
        self._drop_ownerless(requests)
        taken, replays = self._take_idempotency_keys(news, requests)
        self._insert(requests)
        self._release_refused(taken)
        self._answer_replays(taken, replays)
        return [self.results[place] for place in range(len(news))]

    def _requests(self, news: Sequence[NewAction]) -> dict[int, Request]:
        requests = {}
        for place, new in enumerate(news):
            try:
                requests[place] = self._request(new)
            except PostdateError as error:
                self.results[place] = error
        return requests

    def _request(self, new: object) -> Request:
        if not isinstance(new, NewAction):
            raise Invalid(field="actions", rule="must be NewAction values", value=new)
        action_type = self.kernel.registry[new.action_type]
        workspace, user = owner_id(new.workspace, field="workspace"), user_id(new.user)
        when = moment(
            new.at,
            tz=new.tz,
            gap=new.gap,
            fold=new.fold,
            default_zone=lambda: self._zone(workspace, user),
            zone_policy=new.zone_policy,
        )
        text.optional_name(new.idempotency_key, field="idempotency_key")
        target = text.optional_name(new.target, field="target")
        return Request.read(
            {
                "id": self.kernel.new_id(self.now),
                "workspace_id": workspace,
                "user_id": user,
                "action_type": action_type.name,
                "target_key": target,
                "payload": action_type.dump(new.payload, target=target),
                "occurrence": "" if new.occurrence == "" else text.name(new.occurrence, field="occurrence"),
                "publish_at": when.publish_at,
                "intent": when.intent,
                "expires_at": expiry(new.expires_at, publish_at=when.publish_at),
                "overlap_key": text.optional_name(new.overlap_key, field="overlap_key"),
                "created_at": self.now,
            }
        )

    def _zone(self, workspace: UUID | None, user: UUID) -> str | None:
        if (workspace, user) not in self._zones:
            self._zones[workspace, user] = self.kernel.default_zone(self.tx, workspace=workspace, user=user)
        return self._zones[workspace, user]

    def _drop_ownerless(self, requests: dict[int, Request]) -> None:
        owners = requests.values()
        missing = hold_existing_owners(
            self.tx, workspaces={r.workspace_id for r in owners}, users={r.user_id for r in owners}
        )
        for place, request in list(requests.items()) if missing else ():
            error = missing.get((PROFILE, request.user_id))
            if request.workspace_id is not None:
                error = missing.get((WORKSPACE, request.workspace_id), error)
            if error is not None:
                self.results[place] = error
                del requests[place]

    def _take_idempotency_keys(
        self, news: Sequence[NewAction], requests: dict[int, Request]
    ) -> tuple[dict[int, Entry], dict[int, Entry]]:
        """Take the keys that are free; requests whose key is not are put aside as replays."""
        expires_at = self.now + self.kernel.settings.idempotency_ttl
        wanted = {
            place: _entry(request, new.idempotency_key, expires_at)
            for place, request in requests.items()
            if (new := news[place]).idempotency_key is not None
        }
        first: dict[tuple[str, str], int] = {}
        for place, entry in wanted.items():
            first.setdefault((entry.scope, entry.key), place)
        won = take_keys(self.tx, [wanted[place] for place in first.values()], now=self.now)
        taken = {place: wanted[place] for key, place in first.items() if key in won}
        replays = {place: entry for place, entry in wanted.items() if place not in taken}
        for place in replays:
            del requests[place]
        return taken, replays

    def _insert(self, requests: Mapping[int, Request]) -> None:
        admission = insert_actions(self.tx, list(requests.values()), in_savepoint=self.in_savepoint)
        refused = {}
        for place, request in requests.items():
            if request.id in admission.admitted:
                self.results[place] = _queued(request)
            elif request.id in admission.invalid:
                self.results[place] = admission.invalid[request.id]
            else:
                refused[place] = request
        errors = why_refused(self.tx, refused.values())
        self.results.update({place: errors[request.id] for place, request in refused.items()})
        self._note_actor([request for request in requests.values() if request.id in admission.admitted])

    def _note_actor(self, admitted: Sequence[Request]) -> None:
        if self.actor is None:
            return
        rows = [event_row(r.id, r.workspace_id, at=self.now, cause=SCHEDULED, actor=self.actor) for r in admitted]
        append_events(self.tx, rows)

    def _release_refused(self, taken: Mapping[int, Entry]) -> None:
        refused = [entry for place, entry in taken.items() if isinstance(self.results[place], PostdateError)]
        release_keys(self.tx, [(entry.scope, entry.key) for entry in refused])

    def _answer_replays(self, taken: Mapping[int, Entry], replays: Mapping[int, Entry]) -> None:
        """Answer what the first request under the key was answered: in this call, or in an earlier one."""
        if not replays:
            return
        first = {(entry.scope, entry.key): (entry, self.results[place]) for place, entry in taken.items()}
        earlier = [(entry.scope, entry.key) for entry in replays.values() if (entry.scope, entry.key) not in first]
        held = find_keys(self.tx, earlier)
        made = find_actions(self.tx, [entry.action_id for entry in held.values() if entry.action_id])
        for key, entry in held.items():
            action = made.get(entry.action_id) if entry.action_id else None
            first[key] = entry, action or IdempotencyConflict(entry.key, existing=entry.action_id)
        for place, entry in replays.items():
            before, answer = first.get((entry.scope, entry.key), (None, None))
            same = before is not None and before.body_hash == entry.body_hash
            conflict = IdempotencyConflict(entry.key, existing=before.action_id if before else None)
            self.results[place] = answer if same and answer else conflict


def why_refused(tx: Transaction, requests: Iterable[Request]) -> dict[UUID, PostdateError]:
    """Return, for requests that were not admitted, what stands in their way."""
    refused = list(requests)
    keys = [request.key for request in refused if request.key is not None]
    active, guarded = active_keys(tx, keys), guarded_keys(tx, keys, but={request.id for request in refused})
    return {request.id: _why(tx, request, active, guarded) for request in refused}


def _why(tx: Transaction, request: Request, active: Mapping[str, UUID], guarded: Mapping[str, UUID]) -> PostdateError:
    if request.key is not None and request.key in active:
        return AlreadyScheduled(request.key, existing=active[request.key])
    if request.key is not None and request.key in guarded:
        return AlreadyPublished(request.key, existing=guarded[request.key])
    if request.overlap_key is not None:
        holder = overlap_holder(tx, request.action_type, request.overlap_key)
        return OverlapTaken(request.overlap_key, existing=holder)
    return AlreadyScheduled(request.key or str(request.id), existing=None)  # gone again since it stood in the way


def _entry(request: Request, key: str, expires_at: datetime) -> Entry:
    owner = request.workspace_id or request.user_id
    return Entry(
        scope=f"schedule:{owner}",
        key=key,
        body_hash=_body_hash(request),
        action_id=request.id,
        expires_at=expires_at,
    )


def _body_hash(request: Request) -> str:
    """Hash what was asked, leaving out what differs between two tellings of one request."""
    told = asked(request)
    for told_anew in ("id", "created_at"):
        del told[told_anew]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _queued(request: Request) -> Action:
    return Action.read({**vars(request), "status": Status.QUEUED, "updated_at": request.created_at})
