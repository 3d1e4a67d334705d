"""How does the queue come to hold what every source wants, workspace by workspace, once a minute?

What a source says is heard in parts, and each part is made true in a transaction of its own. Only where it has said
everything, what it did not say is withdrawn.
"""

from __future__ import annotations

import hashlib
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from postdate.domain.reconcile import Keep, Kept, Withdraw, thing_of
from postdate.domain.text import cleaned
from postdate.engine.fulfil import Planned, fulfil, unwanted_steps, withdraw
from postdate.engine.hearing import BATCH, Hearing
from postdate.engine.tally import ReconcileReport, Tally, warn_of
from postdate.engine.wanted import Scope
from postdate.errors import DatabaseTimedOut, SourceFailed
from postdate.store.passing import passes
from postdate.store.reconcile import keys_of_source, keys_of_thing, page_of_workspaces, standing_under

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from postdate.domain.reconcile import Parent
    from postdate.engine.tally import Reconciled
    from postdate.kernel import Kernel
    from postdate.sources import Registered
    from postdate.store.transaction import Transaction

    Told = Callable[[Scope, Planned], None]
    Result = TypeVar("Result")

INTERVAL = timedelta(minutes=1)
"""How often every source is asked (P44)."""

_PAGE = 1_000
"""How many of a source's actions are looked through at once."""
_UNREADABLE = "something it said has no key, so that nobody can tell what it did not say"


class Reconciler:
    """The pass. One process at a time does it; where two do all the same, the guard in each write decides."""

    name = "reconcile"
    interval = INTERVAL

    def __init__(self, kernel: Kernel, *, dry_run: bool = False, told: Told | None = None) -> None:
        """Take what hears of each step, else what went wrong is logged; a dry run writes nothing."""
        self._kernel = kernel
        self._dry_run = dry_run
        self._told = told

    async def run_once(self, now: datetime) -> ReconcileReport:
        """Ask every source about every workspace. Where one fails that is reported, and the rest goes on."""
        parts = [
            await self._part(source, Scope(source=source.name, workspace_id=each, now=now, dry_run=self._dry_run))
            for source in self._kernel.sources
            async for each in self._workspaces(source)
        ]
        return ReconcileReport(now=now, parts=tuple(parts))

    async def _part(self, source: Registered, scope: Scope) -> Reconciled:
        part = Part(self._kernel, source, scope, told=self._told)
        try:
            await part.run()
        except SourceFailed as error:
            part.tally.failed = error.why
        except DatabaseTimedOut:
            raise
        except Exception as error:
            if isinstance(error, SQLAlchemyError) and passes(error):
                raise  # the database is away: it would be so for the next workspace, too
            part.tally.failed = f"{type(error).__name__}: {cleaned(error, limit=500)}"
        report = part.tally.report()
        if self._told is None:
            warn_of(report)
        return report

    async def _workspaces(self, source: Registered) -> AsyncIterator[UUID | None]:
        for each in source.workspaces or ():
            yield each
        last: UUID | None = None
        while source.workspaces is None:
            page = await self._kernel.work(partial(page_of_workspaces, after=last, limit=BATCH), read_only=True)
            for last in page:
                yield last
            if len(page) < BATCH:
                return


class Part:
    """What is done for one source in one workspace."""

    def __init__(self, kernel: Kernel, source: Registered, scope: Scope, *, told: Told | None = None) -> None:
        self.tally = Tally(scope=scope)
        self._kernel = kernel
        self._scope = scope
        self._told = told
        self._hearing = Hearing(source.name, source.on(kernel.database), scope.workspace_id, timeout=source.timeout)
        self._said: set[bytes] = set()
        """Digests of the keys that the source has said: a hundred thousand of them take some ten megabytes."""

    async def run(self) -> None:
        """Make true what the source says, and withdraw what it did not say. Raises `SourceFailed`."""
        await self._hear()
        ours = partial(keys_of_source, source=self._scope.source, place=self._scope.workspace_id, limit=_PAGE)
        after: str | None = ""
        while after is not None and self.tally.failed is None:
            page = await self._work(partial(ours, after=after))
            await self._withdraw(page)
            after = page[-1] if len(page) == _PAGE else None

    async def plan_for(self, thing_id: str) -> None:
        """Tell what `run` would do about one thing. Raises `SourceFailed`."""
        await self._hear(thing_id)
        types = [action_type.name for action_type in self._kernel.registry]
        ours = partial(keys_of_thing, source=self._scope.source, place=self._scope.workspace_id, types=types)
        if self.tally.failed is None:
            await self._withdraw(await self._work(partial(ours, thing_id=thing_id)))

    async def _hear(self, thing_id: str | None = None) -> None:
        async with aclosing(self._hearing.desired(thing_id=thing_id)) as parts:
            async for heard in parts:
                for error in heard.unreadable:
                    self.tally.refuse(str(error))
                    self.tally.failed = self.tally.failed or f"{_UNREADABLE}: {error}"
                new = {_digest(key): key for key in heard.desired}
                again = [new.pop(digest) for digest in new.keys() & self._said]
                self._said |= new.keys()
                self._tell([Planned(step=Keep(key=key, reason=Kept.REPEATED)) for key in (*heard.repeated, *again)])
                if new:
                    desired = {key: heard.desired[key] for key in new.values()}
                    made_true = partial(fulfil, kernel=self._kernel, scope=self._scope, desired=desired)
                    self._tell(await self._work(made_true))

    async def _withdraw(self, keys: Sequence[str]) -> None:
        """Withdraw what the source did not say. It is asked for the parents of what would go, and of nothing else."""
        unsaid = [key for key in keys if _digest(key) not in self._said]
        if not unsaid:
            return
        unwanted = list((await self._work(partial(standing_under, keys=unsaid))).values())
        going = [each for each in unwanted_steps(self._scope, unwanted, {}) if isinstance(each, Withdraw)]
        things = sorted({thing_of(each.key) for each in going})
        parents: dict[str, Parent] = {}
        for first in range(0, len(things), BATCH):
            parents |= await self._hearing.parents(things[first : first + BATCH])
        steps = unwanted_steps(self._scope, unwanted, parents)
        self._tell(await self._work(partial(withdraw, kernel=self._kernel, scope=self._scope, steps=steps)))

    async def _work(self, function: Callable[[Transaction], Result]) -> Result:
        return await self._kernel.work(function, read_only=self._scope.dry_run)

    def _tell(self, planned: Sequence[Planned]) -> None:
        self.tally.add(planned)
        if self._told is not None:
            for each in planned:
                self._told(self._scope, each)


def _digest(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=16).digest()
