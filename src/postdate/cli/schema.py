"""How does a database get our schema from a shell?"""

from __future__ import annotations

import sys

import typer

from postdate.cli.command import command
from postdate.cli.failure import ExitCode, tell
from postdate.cli.installation import Installation
from postdate.cli.options import JsonFlag
from postdate.cli.records import print_json
from postdate.errors import SchemaMismatch
from postdate.store.migrate import SchemaStatus, script, status

db = typer.Typer(name="db", help="Bring the database's schema up to this version.", no_args_is_help=True)


@command
def upgrade(installation: Installation) -> None:
    """Bring the schema up to this version; without harm where it is so already."""
    with installation.opened(may_be_missing=True) as app:
        app.migrate()
        found = status(app.settings.database_url, app.kernel.names)
    print(f"the schema is at {found.found}")  # noqa: T201 - the answer


@command
def show_status(installation: Installation, *, as_json: JsonFlag = False) -> None:
    """Say where the schema stands: exit code 0 where this version can run on it, else 6. Say, too, what is on hold."""
    held = None
    with installation.opened(may_be_missing=True) as app:
        file = app.kernel.database.file
        if file is not None and not file.exists():
            found = SchemaStatus(found=None)
        else:
            found = status(app.settings.database_url, app.kernel.names)
            held = app.sync.held() if found.current else None
    newer = found.found is not None and found.found > found.expected
    if as_json:
        standing = {"found": found.found, "expected": found.expected, "current": found.current, "newer": newer}
        print_json({**standing, "held_because": None if held is None else held.because})
    if not found.current:
        tell(SchemaMismatch(found=found.found, expected=found.expected, newer=newer))
        raise typer.Exit(ExitCode.OTHER_SCHEMA)
    if not as_json:
        print(f"the schema is at {found.found}")  # noqa: T201 - the answer
    if held is not None:
        tell(f"on hold until `postdate release`: {held.because}")


@command
def sql(installation: Installation) -> None:
    """Print the SQL that brings an empty database up to this version."""
    with installation.opened(may_be_missing=True) as app:
        sys.stdout.write(script(app.settings.database_url, app.kernel.names))


db.command("upgrade")(upgrade)
db.command("status")(show_status)
db.command("sql")(sql)
