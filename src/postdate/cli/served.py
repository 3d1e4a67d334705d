"""Which action types does a process serve, and can it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from postdate.errors import Invalid, Misconfigured, NotConfigured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postdate.app import Postdate
    from postdate.registry import ActionType

Application = Annotated[
    str | None,
    typer.Argument(metavar="MODULE:APP", help="As --app: whose action types to serve.", show_default=False),
]
TypesOption = Annotated[
    str | None, typer.Option("--types", metavar="A,B", help="Serve these action types only.", show_default=False)
]


def servable_types(app: Postdate, types: str | None) -> list[str]:
    """Return the names of the action types to serve, all or those that `A,B` names.

    Raises `Invalid`, `UnknownActionType`, and `Misconfigured` naming the setting that one of them lacks.
    """
    chosen = _chosen(app, types)
    _require_configured(chosen)
    return [action_type.name for action_type in chosen]


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
