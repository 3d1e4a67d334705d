"""How does a process fire what is due until it is told to stop?"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import structlog
import typer
from sqlalchemy import URL

from postdate.cli.command import command
from postdate.cli.failure import brief
from postdate.cli.installation import Installation
from postdate.cli.logs import LogLevel, configure_logs
from postdate.engine.loop import worker_name
from postdate.errors import Invalid, Misconfigured, NotConfigured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.app import Postdate
    from postdate.registry import ActionType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_log = structlog.get_logger("postdate")


@command
def serve(
    installation: Installation,
    application: Annotated[
        str | None,
        typer.Argument(metavar="MODULE:APP", help="As --app: whose action types to serve.", show_default=False),
    ] = None,
    *,
    types: Annotated[
        str | None, typer.Option(metavar="A,B", help="Serve these action types only.", show_default=False)
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="From which level on to log.")] = LogLevel.INFO,
) -> None:
    """Fire what is due until SIGTERM or SIGINT (Ctrl-C).

    Runs that have started may end within POSTDATE_STOP_GRACE (30 seconds); a second signal cuts them off at once.
    Logs to stderr: for people on a terminal, as JSON lines elsewhere.
    """
    configure_logs(log_level)
    if application is not None:
        installation = replace(installation, app=application)
    with installation.opened() as app:
        chosen = _chosen(app, types)
        _require_configured(chosen)
        asyncio.run(_run(app, [action_type.name for action_type in chosen]))


def named_types(app: Postdate, types: str) -> list[ActionType]:
    """Return the action types that `A,B` names. Raises `Invalid` and `UnknownActionType`."""
    names = dict.fromkeys(name.strip() for name in types.split(","))
    if "" in names:
        raise Invalid(field="types", rule="must be names separated by commas", value=types)
    return [app.kernel.registry[name] for name in names]


def _chosen(app: Postdate, types: str | None) -> list[ActionType]:
    if types is not None:
        return named_types(app, types)
    if not len(app.kernel.registry):
        raise Misconfigured("the application has no action types: there is nothing to serve")
    return list(app.kernel.registry)


def _require_configured(chosen: Sequence[ActionType]) -> None:
    """Raise `Misconfigured` that names the setting which is missing, and how to do without."""
    lacking = {action_type.name: error for action_type in chosen if (error := _lacks(action_type)) is not None}
    if not lacking:
        return
    others = ",".join(action_type.name for action_type in chosen if action_type.name not in lacking)
    said = "; ".join(str(error) for error in lacking.values())
    raise Misconfigured(f"{said}{f' (or serve without: --types {others})' if others else ''}")


def _lacks(action_type: ActionType) -> NotConfigured | None:
    if action_type.configured is not None:
        try:
            action_type.configured()
        except NotConfigured as error:
            return error
    return None


async def _run(app: Postdate, types: Sequence[str]) -> None:
    stop = asyncio.Event()
    _stop_on_signal(stop, grace=app.settings.stop_grace.total_seconds())
    try:
        await _require_database(app)
        _log.info("serving", types=list(types), database=_shown(app.kernel.database.url), worker=worker_name())
        await app.run(stop, types=types)
        _log.info("stopped")
    finally:
        await app.close()


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
