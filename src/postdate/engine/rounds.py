"""How does the engine claim, round after round, as long as there is room; and when must it look again?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from postdate.clock import monotonic
from postdate.engine.alarm import AHEAD, NEAR
from postdate.engine.beginning import Beginning
from postdate.engine.claim import BATCH, Claimer, ClaimRound, claim_round, lease_end
from postdate.engine.unheard import Unheard
from postdate.store.queue import next_due

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from postdate.domain.action import Claimed
    from postdate.engine.dispatch import Dispatcher
    from postdate.engine.run import Run
    from postdate.kernel import Kernel
    from postdate.registry import ActionType
    from postdate.store.transaction import Transaction

LONGEST_PASS = timedelta(seconds=120)
"""How long one pass goes on claiming (P36)."""

_LOOK_AGAIN = AHEAD + timedelta(milliseconds=100)


class Rounds:
    """Claims what is due and starts it. Nothing is claimed that could not begin at once, or not be written afterwards.

    `is_full()` says that the database does not keep up; `moved()` is called for every round.
    """

    def __init__(
        self,
        kernel: Kernel,
        types: Mapping[str, ActionType],
        dispatcher: Dispatcher,
        *,
        worker: str,
        is_full: Callable[[], bool],
        moved: Callable[[], None],
    ) -> None:
        self._kernel = kernel
        self._types = types
        self._dispatcher = dispatcher
        self._worker = worker
        self._is_full = is_full
        self._moved = moved
        self._unheard = Unheard(kernel, types)
        self._looked_at = datetime.min.replace(tzinfo=UTC)
        """As of when the last round has claimed."""
        self._ahead = timedelta(0)
        """How far ahead to claim: not at all in a single pass, which no alarm follows."""
        self._begun: UUID | None = None
        """The token of the last round whose transaction has begun."""
        self._last = ClaimRound()
        self._reads_within = False
        """Whether a claim is read within its transaction, and so undone: the last one held what makes no sense.

        That one was handed back, which every action's history tells of: once, not each time that it is tried.
        """

    async def claim_all(self, *, seen: datetime | None) -> int:
        """Claim and start until nothing more is due or startable, and return how many actions were due.

        As soon as there is room, the next are claimed while the last begin, so that the database does not wait for us.
        Nothing is claimed from a database that has lost the tick `seen`.
        """
        until = monotonic() + LONGEST_PASS.total_seconds()
        due_count = 0
        await self.hand_back()
        beginning = Beginning()
        try:
            while (free := self._free_slots()) and monotonic() < until:
                self._moved()
                found = await self._claimed(free, seen)
                self._last = replace(found, by_type=())  # which must not keep them in memory
                await beginning.add(map(self._taken_up, found.runnable))
                due_count += found.due_count
                if not found.due_count:
                    break
                await beginning.until(self._has_room_ahead)
            await beginning.end()
        finally:
            beginning.end_at_once()
        return due_count

    def _taken_up(self, claimed: Claimed) -> Run:
        return self._dispatcher.take_up(claimed, self._types[claimed.action.action_type])

    def _has_room_ahead(self) -> bool:
        """Whether the next are claimed while the last begin: a whole batch of them, since few would cost as much."""
        return max(self._free_slots().values(), default=0) >= BATCH

    def bar(self) -> None:
        """Note that the whole installation is on hold: there is nothing to look for."""
        self._last = ClaimRound(barred=True)

    async def hand_back(self) -> None:
        """Hand back what was claimed without our hearing of it."""
        await self._unheard.hand_back(self._kernel.clock.now())

    async def next_look(self) -> datetime | None:
        """Return when something that could begin is due next. A type without a free slot waits for one of its runs.

        What is due already has just been passed over: another transaction has its row locked, and may for long. Of a
        pause or a hold that ends, an announcement tells.
        """
        self._ahead = NEAR
        if self._last.barred:
            return None
        free = [name for name in self._free_slots() if name not in self._last.stopped]
        if not free:
            return None
        due = await self._kernel.work(lambda tx: next_due(tx, free), read_only=True)
        if due is None or due > self._looked_at:
            return due
        return self._kernel.clock.now() + _LOOK_AGAIN

    async def _claimed(self, free: Mapping[str, int], seen: datetime | None) -> ClaimRound:
        token = uuid4()
        try:
            found = await self._kernel.work(partial(self._claim, free=free, seen=seen, token=token))
            self._reads_within = True
            found = found.read()
            self._reads_within = False
        except BaseException:
            if self._begun == token:
                self._unheard.note(token, lease_ends=self._lease_ends())
            raise
        return found

    def _claim(self, tx: Transaction, *, free: Mapping[str, int], seen: datetime | None, token: UUID) -> ClaimRound:
        # not before the transaction has begun: SQLite may have let us wait for it, and the lease begins here
        now = self._kernel.clock.now()
        self._looked_at = now + self._ahead  # what is claimed ahead waits for its instant as a run that has not begun
        self._begun = token
        settings = self._kernel.settings
        claimer = Claimer(
            worker=self._worker,
            token=token,
            lease=settings.lease,
            margin=settings.lease_margin,
            zone_of=self._kernel.zone_of,
        )
        found = claim_round(tx, claimer, free, self._types, now=now, due_by=self._looked_at, seen=seen)
        return found.read() if self._reads_within else found

    def _lease_ends(self) -> set[datetime]:
        """Return when the leases of the last round of claims end."""
        now, settings = self._looked_at, self._kernel.settings
        lease, margin = settings.lease, settings.lease_margin
        return {lease_end(each, now=now, lease=lease, margin=margin) for each in self._types.values()}

    def _free_slots(self) -> dict[str, int]:
        """Return how many runs of each type may begin: none while it stops, or the database cannot keep up."""
        if self._dispatcher.stopping or self._is_full():
            return {}
        slots = {name: self._dispatcher.free_slots(action_type) for name, action_type in self._types.items()}
        return {name: free for name, free in slots.items() if free > 0}
