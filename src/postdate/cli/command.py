"""Which options does every command take, and how does it get what they say?"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from postdate.cli.installation import Installation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

APP = "--app"
DATABASE_URL = "--database-url"
APP_HELP = "module:app, whose action types and settings to use (or POSTDATE_APP); the built-in types otherwise."
DATABASE_URL_HELP = "The database (or POSTDATE_DATABASE_URL): sqlite:///file.db or postgresql://host/name."
PANEL = "Options of every command"

AppOption = Annotated[str | None, typer.Option(APP, metavar="MODULE:APP", help=APP_HELP, rich_help_panel=PANEL)]
DatabaseUrlOption = Annotated[
    str | None, typer.Option(DATABASE_URL, metavar="URL", help=DATABASE_URL_HELP, rich_help_panel=PANEL)
]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_EVERYWHERE = (
    inspect.Parameter("app_option", _KEYWORD, default=None, annotation=AppOption),
    inspect.Parameter("database_url_option", _KEYWORD, default=None, annotation=DatabaseUrlOption),
)

_LAST = {"note": 1, "actor": 2, "as_json": 3}
"""What stands behind a command's other options, in every command alike."""


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Hand `function` an `Installation` first, and take `--app` and `--database-url` behind its name too.

    Options that several commands share may be one TypedDict: `**options: Unpack[...]`; what is not given is None.
    """
    signature = inspect.signature(function, eval_str=True)
    own = sorted(list(_each(signature.parameters.values()))[1:], key=lambda each: _LAST.get(each.name, 0))

    def run(ctx: typer.Context, *, app_option: str | None, database_url_option: str | None, **arguments: Any) -> None:
        before: Installation = ctx.obj
        installation = Installation(
            app=app_option or before.app,
            database_url=before.database_url if database_url_option is None else database_url_option,
        )
        function(installation, **arguments)

    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *own, *_EVERYWHERE]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _each(parameters: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    """Yield the parameters, and of a `**options: Unpack[...]` each option, before those that are a command's own."""
    taken = list(parameters)
    yield from (each for each in taken if each.kind is not _KEYWORD and each.kind is not inspect.Parameter.VAR_KEYWORD)
    for each in taken:
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            (shared,) = get_args(each.annotation)
            for name, option in get_type_hints(shared, include_extras=True).items():
                yield inspect.Parameter(name, _KEYWORD, default=None, annotation=option)
    yield from (each for each in taken if each.kind is _KEYWORD)
