"""How does a new project begin?"""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postdate.cli.command import command
from postdate.cli.failure import tell
from postdate.cli.installation import Installation
from postdate.cli.options import TzOption
from postdate.cli.starter import BUILT_IN, Wanted, starter
from postdate.domain import text
from postdate.domain.settle import Policy
from postdate.domain.zones import zone
from postdate.errors import Invalid, Refused
from postdate.settings import Settings
from postdate.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Sequence

_FUNCTION = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
TYPES = "publish_story,reminder"
DATABASE_URL = str(Settings.model_fields["database_url"].default)
TAKEN = {"app", "replace", "builtin_action_types", "str"}
"""Names that mean something else in app.py. Those of its classes and constants have capitals, which types may not."""


@command
def init(
    installation: Installation,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; made if need be.")] = Path(),
    *,
    types: Annotated[
        str | None, typer.Option(metavar="A,B", help="Action types: built-in ones, and names of your own.")
    ] = None,
    tz: TzOption = None,
    auto_attempts: Annotated[int | None, typer.Option(metavar="N", help="Runs until it fails by itself.")] = None,
    max_attempts: Annotated[int | None, typer.Option(metavar="N", help="Runs in all, a person's retries too.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: what is not given is as usual.")] = False,
) -> None:
    """Write a first app.py and .env.example; nothing that exists is overwritten.

    On a terminal it asks for what is not given.
    """
    ask = _Questions(silent=yes or not sys.stdin.isatty())
    names = _names(ask.text("Action types, built-in or your own", types, TYPES))
    wanted = Wanted(
        types=names,
        tz=_zone(ask.text("Zone of wall times that name none (empty: the workspace's or user's)", tz, "")),
        auto_attempts=ask.number("How many attempts by itself", auto_attempts, Policy.auto_attempts),
        max_attempts=ask.number("How many attempts in all, a person's too", max_attempts, Policy.max_attempts),
        database_url=_url(ask.text("Database", installation.database_url, DATABASE_URL)),
    )
    if not 1 <= wanted.auto_attempts <= wanted.max_attempts:
        rule = "must be at least 1, and at most max_attempts"
        raise Invalid(field="auto_attempts", rule=rule, value=wanted.auto_attempts)
    _write(folder, starter(wanted))
    tell(f"next, in {folder}: cp .env.example .env; postdate db upgrade --app app:app; postdate serve app:app")


class _Questions:
    """Asks for what was not given, unless there is nobody to ask."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent

    def text(self, question: str, given: str | None, usual: str) -> str:
        if given is not None or self._silent:
            return usual if given is None else given
        return str(typer.prompt(question, default=usual, show_default=bool(usual)))

    def number(self, question: str, given: int | None, usual: int) -> int:
        if given is not None or self._silent:
            return usual if given is None else given
        return int(typer.prompt(question, default=usual, type=int))


def _names(types: str) -> Sequence[str]:
    names = list(dict.fromkeys(name.strip() for name in types.split(",")))
    for name in names:
        text.name(name, field="types", limit=text.MAX_TYPE)
        if not _FUNCTION.fullmatch(name) or keyword.iskeyword(name) or name in TAKEN:
            rule = f"must be {', '.join(BUILT_IN)}, or names of your own like publish_story"
            raise Invalid(field="types", rule=rule, value=name)
    return names


def _zone(tz: str) -> str | None:
    return zone(tz).key if tz else None


def _url(database_url: str) -> str:
    Database(database_url)
    return database_url


def _write(folder: Path, files: dict[str, str]) -> None:
    for name in files:
        if (folder / name).exists():
            raise Refused(f"{folder / name} exists already: name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with (folder / name).open("x", encoding="utf-8") as file:  # another may have been quicker
                file.write(content)
            print(folder / name)  # noqa: T201 - the answer
    except OSError as error:
        raise Invalid(field="dir", rule=f"cannot be written to: {error.strerror}", value=str(folder)) from None
