"""What does a small app look like, for workers that will be hurt?"""

from __future__ import annotations

from postdate import Context, Deferred, NotSent, Postdate, Published

app = Postdate()


async def found(_ctx: Context, _payload: dict[str, object]) -> Published:
    """Answer as a provider that has it."""
    return Published(provider_id="found")


@app.action("post")
async def post(_ctx: Context, _payload: dict[str, object]) -> str:
    """Go out at once."""
    return "provider-1"


@app.action("repeatable", idempotent=True)
def repeatable(_ctx: Context, _payload: dict[str, object]) -> None:
    """Go out from a thread, to a provider that knows repeated calls."""


@app.action("askable", lookup=found)
async def askable(_ctx: Context, _payload: dict[str, object]) -> str:
    """Go out to a provider that can be asked."""
    return "provider-1"


@app.action("unlucky", auto_attempts=3)
async def unlucky(ctx: Context, _payload: dict[str, object]) -> None:
    """Reach nobody at first, then be put off, then go out."""
    if ctx.attempt == 1:
        raise NotSent("no route")
    if ctx.attempt == 2 and ctx.action.last_error != "later":
        raise Deferred(ctx.now, "later")
