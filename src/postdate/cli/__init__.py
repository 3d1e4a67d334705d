"""How is postdate used from a shell?"""

from __future__ import annotations

import sys
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated

import typer

from postdate.cli import moves, pausing, reading
from postdate.cli.bench import bench
from postdate.cli.command import APP, APP_HELP, PANEL, DatabaseUrlOption
from postdate.cli.endpoints import endpoints
from postdate.cli.examining import doctor
from postdate.cli.failure import ExitCode, Guarded
from postdate.cli.holidays import holidays
from postdate.cli.installation import Installation
from postdate.cli.logs import LogLevel, configure_logs
from postdate.cli.pages import docs
from postdate.cli.quiet import quiet_hours
from postdate.cli.reconcile import reconcile
from postdate.cli.releasing import release
from postdate.cli.rules import rules
from postdate.cli.scheduling import schedule
from postdate.cli.schema import db
from postdate.cli.serving import serve, worker
from postdate.cli.starting import init
from postdate.cli.ticking import tick
from postdate.cli.zones import zones

__all__ = ["ExitCode", "cli", "main"]

EXIT_CODES = """
Exit codes: 0 done; 1 refused, as things stand; 2 wrong usage or an invalid value; 3 not found; 4 misconfigured (schema,
settings, database); 5 partly done: some of several were refused; 6 db status: not this version's schema; 7
doctor: something has to be mended; 8 bench: a goal is missed; 9 serve, worker: the engine was stuck.
"""

cli = typer.Typer(
    name="postdate",
    cls=Guarded,
    epilog=EXIT_CODES.replace("\n", " "),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",  # its paragraphs are filled
    pretty_exceptions_enable=False,  # they show local variables, and with them secrets
)


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to fail
    cli(prog_name="postdate")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it so
    if wanted:
        typer.echo(f"postdate {version('postdate')}")
        raise typer.Exit


@cli.callback()
def _root(
    ctx: typer.Context,
    *,
    app: Annotated[
        str | None,
        typer.Option(
            APP,
            metavar="MODULE:APP",
            help=APP_HELP,
            envvar="POSTDATE_APP",
            show_envvar=False,
            rich_help_panel=PANEL,
        ),
    ] = None,
    database_url: DatabaseUrlOption = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Scheduled actions that fire exactly once."""
    configure_logs(LogLevel.WARNING)
    ctx.obj = Installation(app=app, database_url=database_url)


for _name, _command in {
    "init": init,
    "serve": serve,
    "worker": worker,
    "tick": tick,
    "reconcile": reconcile,
    "schedule": schedule,
    "list": reading.list_,
    "show": reading.show,
    "cancel": moves.cancel,
    "reschedule": moves.reschedule,
    "post-now": moves.post_now,
    "retry": moves.retry,
    "confirm": moves.confirm,
    "dismiss": moves.dismiss,
    "pause": pausing.pause,
    "resume": pausing.resume,
    "pauses": pausing.pauses,
    "release": release,
    "doctor": doctor,
    "bench": bench,
    "docs": docs,
}.items():
    cli.command(_name)(_command)
cli.add_typer(rules)
cli.add_typer(holidays)
cli.add_typer(quiet_hours)
cli.add_typer(endpoints)
cli.add_typer(zones)
cli.add_typer(db)
