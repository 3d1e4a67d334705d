"""For which application does a command work, and on which database?"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from postdate.app import Postdate
from postdate.cli.failure import brief
from postdate.errors import Invalid, Misconfigured, PostdateError
from postdate.providers.builtin import builtin_action_types
from postdate.settings import Settings, read_settings
from postdate.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType


_PREFIX = "POSTDATE_"


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What `--app` and `--database-url` say; None where they say nothing."""

    app: str | None = None
    database_url: str | None = None

    @contextmanager
    def opened(self, *, may_be_missing: bool = False) -> Iterator[Postdate]:
        """Give the application, and close its connections afterwards.

        Raises `Misconfigured` where it cannot be loaded, or where a SQLite file does not exist: looking for
        one must not make one.
        """
        app = self._loaded()
        if not may_be_missing:
            _require_file(app.kernel.database.file)
        try:
            yield app
        finally:
            app.kernel.database.close_sync()

    def _loaded(self) -> Postdate:
        if self.app:
            app = imported(self.app)
        else:
            settings = read_settings()
            app = Postdate(settings=settings)
            app.include(*builtin_action_types(settings))
        if self.database_url is not None:
            _move(app, self.database_url)
        return app


def imported(reference: str) -> Postdate:
    """Return the `Postdate` that `module:app` names, looking in the current folder too.

    Raises `Invalid` where it is not of that form, `Misconfigured` where there is no such thing.
    """
    name, _, attribute = reference.partition(":")
    if not name or not attribute:
        raise Invalid(field="app", rule="must be module:app, as in shop.main:app", value=reference)
    module = _module(name)
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise Misconfigured(f"{name} has no {attribute!r}{_instead(module)}") from None
    if not isinstance(found, Postdate):
        raise Misconfigured(f"{reference} is not a Postdate but of type {type(found).__name__}{_instead(module)}")
    return found


def _require_file(file: Path | None) -> None:
    if file is not None and not file.exists():
        raise Misconfigured(f"there is no database {file}: run `postdate db upgrade`, or give --database-url")


def _move(app: Postdate, database_url: str) -> None:
    """Let the application work on another database than the one it names. It has not connected yet."""
    app.kernel.database = Database(database_url, timeout=app.settings.database_timeout)
    app.settings = app.settings.model_copy(update={"database_url": database_url})
    app.kernel.settings = app.settings


def _module(name: str) -> ModuleType:
    here = os.getcwd()  # noqa: PTH109 - sys.path holds text
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            raise Misconfigured(f"there is no module {missing!r} (looked in {here} too)") from None
        raise Misconfigured(f"importing {name} failed: {brief(error)}{_place(error)}") from error
    except ValidationError as error:
        raise Misconfigured(f"importing {name} failed: {_first(error)}") from error
    except PostdateError as error:
        raise Misconfigured(f"importing {name} failed: {error}") from error
    except (Exception, SystemExit) as error:
        raise Misconfigured(f"importing {name} failed: {brief(error)}{_place(error)}") from error


def _instead(module: ModuleType) -> str:
    names = sorted(name for name, value in vars(module).items() if isinstance(value, Postdate))
    return f": did you mean {module.__name__}:{names[0]}?" if names else ""


def _place(error: BaseException) -> str:
    """Say in which line of which file it was raised; nothing where Python itself could not read the file."""
    ours = {__file__, importlib.__file__}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    places = [f" ({frame.filename}:{frame.lineno})" for frame in frames if frame.filename not in ours]
    return places[-1] if places else ""


def _first(error: ValidationError) -> str:
    """Return what a model's error says first, without the value, which may be a secret."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"]))
    if error.title == Settings.__name__ and not field.startswith(_PREFIX):
        field = _PREFIX + field.upper()
    return f"{field}: {first['msg']}"
