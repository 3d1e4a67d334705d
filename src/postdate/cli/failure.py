"""What does a command say, and with which exit code does it end, when it cannot do what was asked?"""

from __future__ import annotations

import os
import re
import sys
from enum import IntEnum
from typing import Any

import typer
from sqlalchemy.exc import DBAPIError
from typer.core import TyperGroup

from postdate.errors import DatabaseTimedOut, Invalid, Misconfigured, NotFound, PostdateError

MAX_SAID = 500
"""How many characters of a foreign error are shown."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class ExitCode(IntEnum):
    """What the exit codes mean. They are documented, so they stay as they are."""

    DONE = 0
    REFUSED = 1
    INVALID = 2
    NOT_FOUND = 3
    MISCONFIGURED = 4
    PARTLY_DONE = 5
    OTHER_SCHEMA = 6
    UNFIT = 7
    GOAL_MISSED = 8
    STUCK = 9
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def exit_code(error: PostdateError) -> ExitCode:
    """Return the exit code that stands for an error."""
    match error:
        case Invalid():
            return ExitCode.INVALID
        case NotFound():
            return ExitCode.NOT_FOUND
        case Misconfigured() | DatabaseTimedOut():
            return ExitCode.MISCONFIGURED
        case _:
            return ExitCode.REFUSED


def plain(text: object) -> str:
    """Return text from outside on one line, without what a terminal would obey."""
    return _CONTROL.sub(" ", str(text))


def brief(error: BaseException) -> str:
    """Return what a foreign error says, on one short line."""
    said = " ".join(plain(error).split())[:MAX_SAID]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def tell(message: object) -> None:
    """Say one line on stderr."""
    print(f"postdate: {plain(message)}", file=sys.stderr, flush=True)  # noqa: T201 - stderr is what this is for


class Guarded(TyperGroup):
    """The root command: every error below it becomes one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises `typer.Exit` and usage errors; anything else is a bug."""
        try:
            answer = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe shows itself here rather than when Python ends
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
            raise typer.Exit(ExitCode.PIPE_CLOSED) from None
        except KeyboardInterrupt:
            tell("interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except PostdateError as error:
            tell(error)
            raise typer.Exit(exit_code(error)) from None
        except DBAPIError as error:
            # the driver's own words: SQLAlchemy would add the statement and its values
            tell(f"the database cannot be used: {brief(error.orig or error)}")
            raise typer.Exit(ExitCode.MISCONFIGURED) from None
        return answer
