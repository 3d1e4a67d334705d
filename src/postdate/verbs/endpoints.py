"""Which addresses get no webhooks any more, and how does a person let them be called again?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.errors import EndpointNotDisabled, Invalid
from postdate.providers.web_url import endpoint, web_url
from postdate.store import endpoints
from postdate.store.events import append_events, event_row
from postdate.store.owners import hold_owners
from postdate.store.schema import SYSTEM_PROFILE
from postdate.verbs.arguments import DEFAULT_ACTOR, actor_name, note_text, owner_id, page_limit
from postdate.verbs.read import existing

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.kernel import Connectable, Kernel, Unbegun
    from postdate.store.endpoints import DisabledEndpoint

ENABLED = "endpoint_enabled"
"""The cause of the event that says so, in the history of the action that found the endpoint gone."""


def disabled_endpoints(
    kernel: Kernel,
    *,
    workspace: UUID | str | None = None,
    user: UUID | str | None = None,
    limit: int = 100,
    connection: Connectable | Unbegun | None = None,
) -> list[DisabledEndpoint]:
    """Return the endpoints that answered 410, the latest first, at most `limit` of them.

    Those of the workspace, else of the user, or of everybody where neither is named. Raises `Invalid` naming the field.
    """
    owner, limit = _owner(workspace, user), page_limit(limit)
    with kernel.transaction(connection, read_only=True) as tx:
        return endpoints.disabled_endpoints(tx, owner=owner, limit=limit)


def enable_endpoint(
    kernel: Kernel,
    url: str,
    *,
    workspace: UUID | str | None = None,
    user: UUID | str | None = None,
    actor: str = DEFAULT_ACTOR,
    note: str | None = None,
    connection: Connectable | Unbegun | None = None,
) -> DisabledEndpoint:
    """Let webhooks of the workspace, else of the user, else of actions without an owner, be sent there again.

    Returns the endpoint as it was disabled. Who did it stands in the history of the action that found it gone. What was
    refused in the meantime stays so until it is retried. Raises `EndpointNotDisabled`, `OwnerNotFound` where the owner
    is being deleted, or `Invalid` naming the field.
    """
    known_as, owner = _known_as(url), _owner(workspace, user) or SYSTEM_PROFILE
    actor, note = actor_name(actor), note_text(note)
    with kernel.transaction(connection) as tx:
        disabled = endpoints.find_disabled(tx, owner=owner, url=known_as)
        if disabled is None:
            raise EndpointNotDisabled(known_as)
        # Before the row: whoever deletes an owner takes the owner first, and what it owns afterwards.
        hold_owners(tx, workspaces=[disabled.workspace_id], users=[disabled.user_id])
        if not endpoints.enable_if_disabled(tx, owner=owner, url=known_as):
            raise EndpointNotDisabled(known_as)
        told = existing(tx, disabled.action_id)
        event = event_row(
            told.id, told.workspace_id, at=kernel.now(tx), cause=ENABLED, actor=actor, url=known_as, note=note
        )
        append_events(tx, [event])
        return disabled


def _owner(workspace: UUID | str | None, user: UUID | str | None) -> UUID | None:
    """Return whose endpoints are meant: the workspace's where both are named, as for an action that has both."""
    named = owner_id(workspace, field="workspace"), owner_id(user, field="user")
    return named[0] or named[1]


def _known_as(url: object) -> str:
    if not isinstance(url, str):
        raise Invalid(field="url", rule="must be text", value=url)
    try:
        return endpoint(web_url(url))
    except ValueError as error:
        raise Invalid(field="url", rule=str(error)) from None
