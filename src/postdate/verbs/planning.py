"""How is every source reconciled at once, and what would be done about one thing?

Sources are asynchronous, and so are these two verbs: they are awaited only, and work on connections of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.domain import text
from postdate.engine.periodic import alone
from postdate.engine.reconcile import Part, Reconciler
from postdate.engine.wanted import Scope
from postdate.errors import OnHold, PassRunning
from postdate.store.heartbeat import heartbeat
from postdate.store.passes import note_run
from postdate.verbs.arguments import owner_id

if TYPE_CHECKING:
    from uuid import UUID

    from postdate.engine.fulfil import Planned
    from postdate.engine.reconcile import Told
    from postdate.engine.tally import ReconcileReport
    from postdate.kernel import Kernel


async def reconcile(kernel: Kernel, *, dry_run: bool = False, told: Told | None = None) -> ReconcileReport:
    """Ask every source now what it wants, and make the queue hold that; the engine does it once a minute.

    A dry run says what it would do and writes nothing. `told(scope, planned)` hears of each step. Raises `PassRunning`
    while another process does it or another pass, and `OnHold` where nothing may be scheduled until a person says so.
    """
    now = await kernel.read_clock()
    reconciler = Reconciler(kernel, dry_run=dry_run, told=told)
    if dry_run:
        return await reconciler.run_once(now)
    async with alone(kernel) as ours:
        if not ours:
            raise PassRunning(reconciler.name)
        found = await kernel.work(heartbeat, read_only=True)
        if found.held_at is not None:
            raise OnHold(found.held_because)
        report = await reconciler.run_once(now)
        await kernel.work(lambda tx: note_run(tx, reconciler.name, at=now))
        return report


async def plan_for(kernel: Kernel, thing_id: str, *, source: str, workspace: UUID | str | None = None) -> list[Planned]:
    """Return what the reconciler would do about one thing, for a user interface to show.

    It is an answer and no order: the pass plans anew, whatever was answered here (P56). Raises `Invalid`,
    `UnknownSource`, and `SourceFailed` where the source does not say.
    """
    text.name(thing_id, field="thing_id")
    registered, place = kernel.sources[source], owner_id(workspace, field="workspace")
    now = await kernel.read_clock()
    planned: list[Planned] = []
    scope = Scope(source=registered.name, workspace_id=place, now=now, dry_run=True)
    part = Part(kernel, registered, scope, told=lambda _, each: planned.append(each))
    await part.plan_for(thing_id)
    return planned
