"""Run as a program, fires what is due as `postdate serve` does, and writes down each run: `... .worker ORDERS`.

`ORDERS` is JSON. A line `step SECONDS` on standard input moves the clock; its end ends the process.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from traceback import print_exc
from typing import TYPE_CHECKING, Any, get_args

from sqlalchemy.exc import DBAPIError

from postdate.app import Postdate
from postdate.clock import Clock, ManualClock, SystemClock
from postdate.domain.outcome import Outcome
from postdate.errors import Misconfigured
from postdate.testing.chaos.journal import CUT, JournalWriter
from postdate.testing.travel import travel

if TYPE_CHECKING:
    from postdate.context import Context
    from postdate.registry import ActionType

AFTERMATH = timedelta(days=1)
"""How much time passes in the end, so that every lease and every wait is over."""

AWAY = 75
"""The exit code of a worker that found no database when it began: whoever supervises it starts it anew."""

SLOTS = 4
"""How many runs of a type a worker has at once, so that all of them have some."""


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a worker is told when it starts."""

    app: str
    database_url: str
    journal: str
    timeout: float
    """The longest time-out of a run, in seconds."""
    margin: float
    """How much longer its lease is."""
    pause: float
    """How long a run lasts beside its handler, half of it before, half after."""
    aftermath: bool = False
    """Whether to let a day pass by a clock of one's own, instead of working on."""

    def text(self) -> str:
        """Return the orders as the program takes them."""
        return json.dumps(asdict(self))


class SteppedClock(SystemClock):
    """The database's time, and what the clock was stepped by."""

    def __init__(self) -> None:
        """Start right."""
        super().__init__()
        self.off = timedelta(0)

    def now(self) -> datetime:
        """Return the time."""
        return super().now() + self.off


def imported(reference: str) -> Postdate:
    """Return the app that `module:app` names, looked for in the current folder too. Raises `Misconfigured`."""
    name, _, attribute = reference.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    found = getattr(importlib.import_module(name), attribute, None)
    if not isinstance(found, Postdate):
        raise Misconfigured(f"{reference} is not a Postdate: give module:app")
    return found


def twin(orders: Orders, clock: Clock) -> Postdate:
    """Return the app on the database of these orders, its runs short, few at once, and written down."""
    app = imported(orders.app)
    seconds = {"lease_margin": orders.margin, "stop_grace": orders.timeout}
    changes = {name: timedelta(seconds=value) for name, value in seconds.items()}
    settings = app.settings.model_copy(update={"database_url": orders.database_url, **changes})
    same = Postdate(settings=settings, zone_of=app.kernel.zone_of, clock=clock)
    journal = JournalWriter(Path(orders.journal))
    same.include(*(_journalled(action_type, journal, orders) for action_type in app.kernel.registry))
    return same


def _journalled(action_type: ActionType, journal: JournalWriter, orders: Orders) -> ActionType:
    half = orders.pause / 2

    async def awaited(ctx: Context, payload: Any) -> Any:
        run = journal.began(ctx)
        try:
            await asyncio.sleep(half)
            said = await action_type.handler(ctx, payload)
            await asyncio.sleep(half)
        except BaseException as error:
            journal.ended(run, _name(error))
            raise
        journal.ended(run, _name(said))
        return said

    def called(ctx: Context, payload: Any) -> Any:
        run = journal.began(ctx)
        try:
            time.sleep(half)
            said = action_type.handler(ctx, payload)
            time.sleep(half)
        except BaseException as error:
            journal.ended(run, _name(error))
            raise
        journal.ended(run, _name(said))
        return said

    async def asked(ctx: Context, payload: Any) -> Any:
        try:
            answer = await action_type.lookup(ctx, payload)  # type: ignore[misc]  # only where there is one
        except BaseException as error:
            journal.answered(ctx, _name(error))
            raise
        journal.answered(ctx, _name(answer))
        return answer

    return replace(
        action_type,
        handler=awaited if action_type.is_async else called,
        lookup=None if action_type.lookup is None else asked,
        timeout=min(action_type.timeout, timedelta(seconds=orders.timeout)),
        concurrency=min(action_type.concurrency, SLOTS),
    )


def _name(said: object) -> str:
    """Return how a run ended, by the name of the outcome that the engine makes of it."""
    if isinstance(said, asyncio.CancelledError):
        return CUT
    if isinstance(said, Outcome):
        return next(str(kind.__name__) for kind in get_args(Outcome) if isinstance(said, kind))
    return "Unconfirmed" if isinstance(said, BaseException) else "Published"


def _obey(clock: SteppedClock) -> None:
    for line in sys.stdin:
        _, seconds = line.split()
        clock.off += timedelta(seconds=float(seconds))
    os._exit(1)  # whoever started this is gone


async def _work(app: Postdate) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    try:
        await app.run(stop)
    except (DBAPIError, OSError):  # once begun, an engine sits these out
        print_exc()
        sys.exit(AWAY)
    finally:
        await app.close()


def main(orders: Orders) -> None:
    """Work until SIGTERM, or see the aftermath to its end."""
    clock = SteppedClock()
    app = twin(orders, clock)
    if not orders.aftermath:
        Thread(target=_obey, args=(clock,), daemon=True).start()
        asyncio.run(_work(app))
        return
    with app.kernel.transaction(None, read_only=True) as tx:
        calm = ManualClock(app.kernel.now(tx))
    later = calm.now() + AFTERMATH
    with app.working_on(orders.database_url, clock=calm):
        asyncio.run(travel(app, to=later))


if __name__ == "__main__":
    main(Orders(**json.loads(sys.argv[1])))
