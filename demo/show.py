"""How does the demo go? Migrate, serve, schedule, watch, judge."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from demo.ledger import Ledger
from demo.next_steps import next_steps
from demo.plan import plan, write_csv
from demo.stage import stage
from postdate import ActionNotFound, Postdate
from postdate.clock import host_time, monotonic

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from demo.options import Options
    from demo.screen import Screen
    from demo.stage import Stage
    from demo.verdict import Verdict

UPGRADE = ("db", "upgrade")
SERVE = ("serve", "--types", "send_email,call_webhook")
SERVING = '"event": "serving"'
"""Stands in the log of `postdate serve` once it is ready."""
NOTICED_WITHIN = 1.5
"""Seconds: on SQLite, `postdate serve` notices within one what another process has scheduled."""


async def show(options: Options, screen: Screen) -> Verdict:
    """Run the demo and return how it went."""
    began = monotonic()
    screen.say("Setting up a database, a mail server and a webhook receiver ...")
    async with stage(postgres=options.postgres) as ready:
        one_command = await _migrate(ready, screen)
        screen.command(SERVE)
        async with ready.program.running(*SERVE, ready=SERVING, log=ready.log):
            screen.say(f"Ready after {monotonic() - began:.1f} s.")
            # By the time the first one is due, the command that schedules it has ended.
            start = host_time() + timedelta(seconds=2 * one_command + NOTICED_WITHIN)
            ledger = await _schedule(options, ready, screen, start=start)
            with screen.counting(ledger):
                await _watch(ready, ledger, screen, late_after=options.late_after)
            if not options.leave:
                verdict = ledger.verdict(late_after=options.late_after)
                await _stay(ready, screen, verdict)
                return verdict
        # `postdate serve` has ended: what it still had in hand has arrived by now.
        while not ready.deliveries.empty():
            ledger.note(ready.deliveries.get_nowait())
        verdict = ledger.verdict(late_after=options.late_after)
        screen.verdict(verdict)
        if not verdict.passed:
            screen.say(f"\nThe log of postdate serve:\n{ready.log.read_text(errors='replace')}")
        return verdict


async def _migrate(ready: Stage, screen: Screen) -> float:
    """Make the tables, and return how many seconds a command takes on this machine."""
    began = monotonic()
    screen.command(UPGRADE)
    await ready.program.run(*UPGRADE)
    return monotonic() - began


async def _schedule(options: Options, ready: Stage, screen: Screen, *, start: datetime) -> Ledger:
    """Schedule everything from a CSV file, as a person would."""
    rows = plan(count=options.rows, start=start, seconds=options.seconds, webhook_url=ready.webhook_url)
    file = ready.folder / "actions.csv"
    write_csv(rows, file)
    command = ("schedule", "--csv", str(file))
    screen.command(command)
    await ready.program.run(*command)
    return Ledger(rows)


async def _watch(ready: Stage, ledger: Ledger, screen: Screen, *, late_after: timedelta) -> None:
    """Show what arrives, until everything has or the last of it would be late."""
    end = max(row.due for row in ledger.rows) + late_after
    with suppress(TimeoutError):
        async with asyncio.timeout((end - host_time()).total_seconds()):
            while ledger.waiting():
                delivery = await ready.deliveries.get()
                row = ledger.note(delivery)
                screen.delivery(delivery, due=row.due if row else None, asked_for=row.asked_for if row else "")


async def _stay(ready: Stage, screen: Screen, verdict: Verdict) -> None:
    """Say how it went and what one can try next, and show what else arrives, until Ctrl-C."""
    screen.verdict(verdict)
    screen.say(next_steps(ready))
    app = Postdate(ready.database_url)
    try:
        while True:
            delivery = await ready.deliveries.get()
            screen.delivery(delivery, due=await _due(app, delivery.action_id))
    except asyncio.CancelledError:
        screen.say("Stopping.")
    finally:
        await app.close()


async def _due(app: Postdate, action_id: UUID) -> datetime | None:
    """Ask postdate when an action was due; what was scheduled for a moment gone by is due at once."""
    try:
        action = await app.get(action_id)
    except ActionNotFound:
        return None
    return max(action.publish_at, action.created_at)
