"""How does a process fire what is due until it is told to stop, or cannot go on?"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import structlog
import typer
from sqlalchemy import URL

from postdate.cli.command import command
from postdate.cli.ending import end_stuck, end_the_rest
from postdate.cli.failure import brief
from postdate.cli.installation import Installation
from postdate.cli.logs import LogLevel, configure_logs
from postdate.cli.served import Application, TypesOption, servable_types
from postdate.engine.loop import worker_name
from postdate.engine.own_process import set_up_process
from postdate.errors import Misconfigured

if TYPE_CHECKING:
    from postdate.app import Postdate
    from postdate.cli.served import Servable

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_log = structlog.get_logger("postdate")

LogLevelOption = Annotated[LogLevel, typer.Option("--log-level", help="From which level on to log.")]


@command
def serve(
    installation: Installation,
    application: Application = None,
    *,
    types: TypesOption = None,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Fire what is due until SIGTERM or SIGINT (Ctrl-C).

    Runs that have started may end within POSTDATE_STOP_GRACE (30 seconds); a second signal cuts them off at once.
    Logs to stderr: for people on a terminal, as JSON lines elsewhere.
    """
    _fire(installation, application, types, log_level)


@command
def worker(
    installation: Installation,
    application: Application = None,
    *,
    types: TypesOption = None,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Fire what is due, and do nothing else, until SIGTERM or SIGINT (Ctrl-C).

    It is the engine alone: what `serve` offers beside it is left out. Any number of workers may share a database.
    """
    _fire(installation, application, types, log_level)


def _fire(installation: Installation, application: str | None, types: str | None, log_level: LogLevel) -> None:
    configure_logs(log_level)
    if application is not None:
        installation = replace(installation, app=application)
    with installation.opened() as app:
        asyncio.run(_run(app, servable_types(app, types)))


async def _run(app: Postdate, servable: Servable) -> None:
    stop = asyncio.Event()
    _stop_on_signal(stop, grace=app.settings.stop_grace.total_seconds())
    try:
        await _require_database(app)
        _log.info("serving", types=list(servable.types), database=_shown(app.kernel.database.url), worker=worker_name())
        set_up_process()
        await app.run(stop, types=servable.asked, stuck=end_stuck)
        _log.info("stopped")
    finally:
        await app.close()
        await end_the_rest()


async def _require_database(app: Postdate) -> None:
    """Raise what is wrong with the database before anything is said about serving it."""
    try:
        await app.kernel.read_clock()
    except OSError as error:  # asyncpg's own, where others raise an error of the database
        raise Misconfigured(f"the database cannot be used: {brief(error)}") from error


def _stop_on_signal(stop: asyncio.Event, *, grace: float) -> None:
    loop = asyncio.get_running_loop()

    def stopping(number: signal.Signals) -> None:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)  # the next one ends the process; leases keep what was running safe
        _log.info("stopping", signal=number.name, grace=grace)
        stop.set()

    for each in _SIGNALS:
        loop.add_signal_handler(each, stopping, each)


def _shown(url: URL) -> str:
    """Return the URL without its password, and without the options that may hold one."""
    bare = URL.create(url.drivername, username=url.username, host=url.host, port=url.port, database=url.database)
    return bare.render_as_string()
