"""Run as a program, drains a queue beside others: `python -m tests.races.draining URL OWN`.

Prints `ready`, waits for a line, schedules `OWN` actions in between, and prints what it ran.
"""

from __future__ import annotations

import asyncio
import json
import sys
from uuid import uuid4

from postdate import Context, Postdate
from postdate.clock import ManualClock
from tests.races.stage import NOON, POST


def say(line: str) -> None:
    """Tell the parent a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def drain(url: str, own: int) -> None:
    """Schedule and run until nothing is due."""
    app, ran = Postdate(url, clock=ManualClock(NOON)), []

    @app.action(POST, concurrency=25)
    async def publish(_ctx: Context, payload: dict[str, str]) -> None:
        ran.append(payload["thing_id"])

    say("ready")
    sys.stdin.readline()
    for _ in range(own):
        await app.schedule(POST, {"thing_id": str(uuid4())}, at=NOON)
        await app.tick()
    await app.close()
    say(json.dumps(ran))


if __name__ == "__main__":
    asyncio.run(drain(sys.argv[1], int(sys.argv[2])))
