"""What becomes of a run that is cancelled by somebody else than the engine, or ends as only a generator does?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from postdate import Action, Context, Postdate, Published, Reason, Status
from postdate.engine.run import Run
from tests.stories.conftest import NOON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[[Context, dict[str, Any]], Awaitable[None]]


async def cancels_all_tasks(ctx: Context, payload: dict[str, Any]) -> None:
    """Do as a host's clean-up does that means its own tasks and meets ours."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel("by the host")
    await asyncio.sleep(0)


async def raises_cancelled(ctx: Context, payload: dict[str, Any]) -> None:
    """Let the cancellation of something it waited for through."""
    future = asyncio.get_running_loop().create_future()
    future.cancel("of its own")
    await future


async def ends_as_a_generator(ctx: Context, payload: dict[str, Any]) -> None:
    raise GeneratorExit("closed")


async def ticked(app: Postdate, handler: Handler, asked: list[str]) -> Action:
    async def lookup(ctx: Context, payload: dict[str, Any]) -> Published:
        asked.append(str(ctx.action.id))
        return Published(provider_id="found")

    app.action("post", lookup=lookup)(handler)
    action = await app.schedule("post", {}, at=NOON)
    await asyncio.wait_for(app.tick(), 20)
    return await app.get(action.id)


async def cancels_itself_and_returns(ctx: Context, payload: dict[str, Any]) -> None:
    """Leave a request behind that nothing obeys any more."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel("too late")


@pytest.mark.parametrize(
    ("handler", "said"),
    [(cancels_all_tasks, "cut off: by the host"), (ends_as_a_generator, "GeneratorExit: closed")],
)
async def test_it_may_have_gone_out_and_is_over_at_once_without_asking(
    app: Postdate, handler: Handler, said: str
) -> None:
    """What was cancelled is not made to go on; a person, or the recovery of its lease, may ask later."""
    asked: list[str] = []
    found = await ticked(app, handler, asked)
    assert (found.status, found.reason, found.last_error) == (Status.FAILED, Reason.UNCONFIRMED, said)
    assert asked == []


async def test_a_cancellation_that_was_not_of_the_run_is_doubt_like_any_other_and_asked_about(app: Postdate) -> None:
    asked: list[str] = []
    found = await ticked(app, raises_cancelled, asked)
    assert (found.status, found.provider_id, len(asked)) == (Status.PUBLISHED, "found", 1)


async def test_what_a_handler_has_answered_counts_though_it_was_cancelled_at_the_end(app: Postdate) -> None:
    asked: list[str] = []
    found = await ticked(app, cancels_itself_and_returns, asked)
    assert (found.status, asked) == (Status.PUBLISHED, [])


async def test_a_run_that_is_cancelled_before_its_first_step_goes_back_without_a_word(
    app: Postdate, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Not even of Python's, about steps that nobody took."""
    called: list[str] = []
    call = Run.call

    def cancelled(run: Run) -> None:
        call(run)
        monkeypatch.undo()
        assert run._task is not None
        run._task.cancel()

    @app.action("post")
    async def post(ctx: Context, payload: dict[str, Any]) -> None:
        called.append(str(ctx.action.id))

    monkeypatch.setattr(Run, "call", cancelled)
    action = await app.schedule("post", {}, at=NOON)
    await asyncio.wait_for(app.tick(), 20)
    found = await app.get(action.id)
    assert (found.status, found.attempt_count, called) == (Status.QUEUED, 0, [])
    assert [str(each.message) for each in recwarn] == []
