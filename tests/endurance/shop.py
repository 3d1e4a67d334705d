"""The app that the processes of these tests run: `postdate worker tests.endurance.shop:app`.

Each call is a line in the journal. What is slow goes on until there is a file `go`.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import timedelta
from functools import cache
from pathlib import Path

from postdate import Backoff, Context, Deferred, Postdate, Published

FOLDER = Path(os.environ.get("SHOP_FOLDER", "."))

app = Postdate()


def note(ctx: Context, word: str) -> None:
    """Write down that a handler was called. One write to the end of a file is never torn."""
    line = {"word": word, "action": str(ctx.action.id), "attempt": ctx.attempt, "process": os.getpid()}
    os.write(journal(), json.dumps(line).encode() + b"\n")
    ctx.log.info(word, attempt=ctx.attempt)


@cache
def journal() -> int:
    """Open the journal."""
    return os.open(FOLDER / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def gone_on() -> bool:
    """Whether what is slow may end."""
    return (FOLDER / "go").exists()


@app.action("shared", concurrency=100, timeout=600)
@app.action("slow", timeout=600)
async def slow(ctx: Context, payload: dict[str, object]) -> str:
    """Go on until it is let go."""
    note(ctx, ctx.action.action_type)
    while not gone_on():
        await asyncio.sleep(0.01)
    return "provider-1"


@app.action("repeatable", timeout=600, idempotent=True, backoff=Backoff(first=timedelta(0)))
async def repeatable(ctx: Context, payload: dict[str, object]) -> str:
    """The same for a provider that tells repeated calls apart."""
    note(ctx, "repeatable")
    while not gone_on():
        await asyncio.sleep(0.01)
    return "provider-1"


async def found(ctx: Context, payload: dict[str, object]) -> Published:
    """Say that the provider has it."""
    note(ctx, "looked up")
    return Published(provider_id="provider-2")


@app.action("answerable", timeout=600, lookup=found)
async def answerable(ctx: Context, payload: dict[str, object]) -> str:
    """The same for a provider that can be asked."""
    note(ctx, "answerable")
    while not gone_on():
        await asyncio.sleep(0.01)
    return "provider-1"


@app.action("considerate", timeout=600)
async def considerate(ctx: Context, payload: dict[str, object]) -> None:
    """Put itself off when the engine stops."""
    note(ctx, "considerate")
    await ctx.stopping
    raise Deferred(ctx.now, "stopping")


@app.action("considerate_in_a_thread", timeout=600)
def considerate_in_a_thread(ctx: Context, payload: dict[str, object]) -> None:
    """The same as a plain function."""
    note(ctx, "considerate_in_a_thread")
    while not ctx.stopping.within(60):
        continue
    raise Deferred(ctx.now, "stopping")


@app.action("deaf_at_once", timeout=0.1)
@app.action("deaf", timeout=600)
async def deaf(ctx: Context, payload: dict[str, object]) -> None:
    """Ignore that it is cut off."""
    note(ctx, "deaf")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@app.action("blocking_at_once", timeout=0.1)
@app.action("blocking", timeout=600)
async def blocking(ctx: Context, payload: dict[str, object]) -> None:
    """Block the event loop for good."""
    note(ctx, "blocking")
    while True:
        time.sleep(60)  # noqa: ASYNC251 - that is what is shown
