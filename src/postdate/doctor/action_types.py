"""Has every action type what it needs to run?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.doctor.finding import fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from postdate.doctor.finding import Finding
    from postdate.registry import ActionType

CHECK = "action type"
_PAGE = "operations#settings"


def action_type_findings(types: Sequence[ActionType]) -> Iterator[Finding]:
    """Yield a finding for each type."""
    if not types:
        advice = "register some with @app.action, or app.include(*builtin_action_types(app.settings))"
        yield warn(CHECK, "none is registered: nothing would fire", advice=advice, page="embedding")
    for action_type in types:
        yield _finding(action_type)


def _finding(action_type: ActionType) -> Finding:
    lacks = action_type.lacks
    if lacks is None:
        return ok(CHECK, f"{action_type.name}: ready")
    if not action_type.required:
        advice = f"set {lacks.setting} to send any: engines go on without this type, and what is due of it waits"
        return warn(CHECK, str(lacks), advice=advice, page=_PAGE)
    advice = f"set {lacks.setting}, or serve without this type (--types): no engine that has it will start"
    return fail(CHECK, str(lacks), advice=advice, page=_PAGE)
