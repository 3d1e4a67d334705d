"""What do the answers of handlers and providers mean?"""

from __future__ import annotations

import inspect
from contextlib import suppress
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from postdate.domain.outcome import NotSent, Outcome, Published, Unconfirmed
from postdate.domain.text import cleaned

if TYPE_CHECKING:
    from postdate.context import Context
    from postdate.registry import ActionType


def called(action_type: ActionType, ctx: Context, payload: Any) -> Outcome:
    """Call a synchronous handler, and return what came of it, whatever that is."""
    try:
        return said(action_type.handler(ctx, payload))
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome, and nobody else is told
        return raised(ctx, error)


def said(answer: object) -> Outcome:
    """Return what a handler's answer means: an outcome, the provider's id, or nothing to add."""
    if answer is None or isinstance(answer, str):
        return Published(provider_id=answer)
    if isinstance(answer, Outcome):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
        return NotSent("the handler returned a coroutine that nobody awaits: define it with `async def`")
    if inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        return NotSent("the handler is a generator, which nobody runs: it must not `yield`")
    if inspect.isawaitable(answer):
        return Unconfirmed("the handler returned before its work was done: it must await what it starts")
    if isinstance(answer, type):
        return Unconfirmed(f"the handler returned the class {answer.__name__}")
    return Published(provider_id=str(answer))


def raised(ctx: Context, error: BaseException) -> Outcome:
    """Return what it means that a handler raised this: an outcome, or doubt, which is logged."""
    if isinstance(error, Outcome):
        return error
    with suppress(Exception):  # a log that cannot be written must not keep the run from its outcome
        told = "".join(format_exception(error))
        ctx.log.warning("the handler raised an exception that is no outcome", traceback=told)
    return Unconfirmed(f"{type(error).__name__}: {cleaned(error)}")


def cut_off(ctx: Context, why: str) -> Unconfirmed:
    """Return what it means that a handler was cut off: doubt, which is logged."""
    with suppress(Exception):  # as above
        ctx.log.warning("the handler was cut off: what it asked for may have been done", why=why)
    return Unconfirmed(why)


def told_by(answer: object) -> str:
    """Return what a provider's answer says that is no clear one."""
    if isinstance(answer, Outcome):
        return getattr(answer, "error", "") or type(answer).__name__
    if isinstance(answer, BaseException):
        return cleaned(f"{type(answer).__name__}: {answer}")
    return cleaned(answer)
