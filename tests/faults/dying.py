"""Run as a program, calls a provider and is killed once so many answers are there, none of them written down.

`python -m tests.faults.dying DATABASE_URL PROVIDER_URL ANSWERS HOURS`, its clock so many hours ahead.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

from postdate import Context, NotSent, Postdate, Published, Settings, Unconfirmed
from postdate.testing.chaos.worker import SteppedClock

if TYPE_CHECKING:
    from postdate.clock import Clock

TYPES = ("plain", "idempotent", "askable")
ATTEMPTS = 3
NOT_FOUND = 404


def app_of(database_url: str, provider: str, *, clock: Clock, dies_after: int | None = None) -> Postdate:
    """Return an app whose handlers call the provider; it may die when so many answers are there."""
    app = Postdate(database_url, settings=Settings(egress_allow="127.0.0.0/8"), clock=clock)
    answers: list[str] = []

    async def call(ctx: Context, payload: dict[str, object]) -> str:
        answer = await ctx.http.post(f"{provider}/send", headers={"Idempotency-Key": ctx.idempotency_key})
        answer.raise_for_status()
        answers.append(answer.text)
        if dies_after is not None:
            if len(answers) == dies_after:
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.Event().wait()
        return answer.text

    async def ask(ctx: Context, payload: dict[str, object]) -> Published:
        answer = await ctx.http.get(f"{provider}/sent/{ctx.idempotency_key}")
        if answer.status_code == NOT_FOUND:
            raise NotSent("they do not have it")
        if not answer.is_success:
            raise Unconfirmed("they cannot tell")
        return Published(provider_id=answer.text)

    app.action("plain", auto_attempts=ATTEMPTS)(call)
    app.action("idempotent", idempotent=True, auto_attempts=ATTEMPTS)(call)
    app.action("askable", lookup=ask, auto_attempts=ATTEMPTS)(call)
    return app


if __name__ == "__main__":
    ahead = SteppedClock()
    ahead.off = timedelta(hours=int(sys.argv[4]))
    asyncio.run(app_of(sys.argv[1], sys.argv[2], clock=ahead, dies_after=int(sys.argv[3])).tick())
