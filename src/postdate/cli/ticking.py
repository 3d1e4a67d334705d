"""How does one bounded pass fire what is due, for hosts that call it by cron?"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from postdate.cli.command import command
from postdate.cli.ending import end_stuck, end_the_rest
from postdate.cli.failure import ExitCode, tell
from postdate.cli.installation import Installation
from postdate.cli.options import JsonFlag
from postdate.cli.records import instant_text, print_json
from postdate.cli.served import Application, TypesOption, servable_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.app import Postdate
    from postdate.engine.loop import TickReport


@command
def tick(
    installation: Installation, application: Application = None, *, types: TypesOption = None, as_json: JsonFlag = False
) -> None:
    """Fire what is due now, wait until it is done, and say what it came to.

    Where there is much to do, it goes on claiming for two minutes. A pass that fails, or finds the installation on
    hold, ends with an exit code other than 0.
    """
    if application is not None:
        installation = replace(installation, app=application)
    with installation.opened() as app:
        code = asyncio.run(_tick(app, servable_types(app, types).asked, as_json=as_json))
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


async def _tick(app: Postdate, types: Sequence[str] | None, *, as_json: bool) -> ExitCode:
    try:
        report = await app.tick(types=types, stuck=end_stuck)
    finally:
        await app.close()
    _print(report, as_json=as_json)
    code = ExitCode.REFUSED if report.held else ExitCode.DONE
    await end_the_rest(code)
    return code


def _print(report: TickReport, *, as_json: bool) -> None:
    if as_json:
        told = {"now": instant_text(report.now), "due": report.due_count, "recovered": report.recovered}
        print_json({**told, "held": report.held})
    elif not report.held:
        print(f"{report.due_count} due, {report.recovered} lost leases settled")  # noqa: T201 - the answer
    if report.held:
        tell("on hold: nothing was looked at")
