"""Which action types does a process serve, and can it?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from postdate.errors import Invalid, Misconfigured

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


@dataclass(frozen=True, kw_only=True)
class Servable:
    """What a process can serve."""

    types: Sequence[str]
    """The names of the action types."""
    named: bool
    """Whether they were asked for by name, rather than all that are set up."""

    @property
    def asked(self) -> Sequence[str] | None:
        """The `types` to ask the engine for: None lets it say what it leaves out."""
        return self.types if self.named else None


def servable_types(app: Postdate, types: str | None) -> Servable:
    """Return the action types to serve: those that `A,B` names, else all but what nobody has set up.

    Raises `Invalid`, `UnknownActionType`, and `Misconfigured` naming the setting that one of them lacks.
    """
    if types is None and not len(app.kernel.registry):
        raise Misconfigured("the application has no action types: there is nothing to serve")
    chosen = app.kernel.registry.served().types if types is None else named_types(app, types)
    _require_configured(chosen)
    return Servable(types=[action_type.name for action_type in chosen], named=types is not None)


def named_types(app: Postdate, types: str) -> list[ActionType]:
    """Return the action types that `A,B` names, each of them required. Raises `Invalid` and `UnknownActionType`."""
    names = dict.fromkeys(name.strip() for name in types.split(","))
    if "" in names:
        raise Invalid(field="types", rule="must be names separated by commas", value=types)
    return [replace(app.kernel.registry[name], required=True) for name in names]


def _require_configured(chosen: Sequence[ActionType]) -> None:
    """Raise `Misconfigured` that names the setting which is missing, and how to do without."""
    lacking = {each.name: lacks for each in chosen if (lacks := each.lacks) is not None}
    if not lacking:
        return
    others = ",".join(action_type.name for action_type in chosen if action_type.name not in lacking)
    said = "; ".join(str(error) for error in lacking.values())
    raise Misconfigured(f"{said}{f' (or serve without: --types {others})' if others else ''}")
