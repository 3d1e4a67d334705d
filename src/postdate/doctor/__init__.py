"""Is this installation fit to fire what it holds, and what should be done where it is not?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from postdate.doctor.action_types import action_type_findings
from postdate.doctor.database import database_findings, unreadable
from postdate.doctor.finding import Finding, Health
from postdate.doctor.holding import holding_findings
from postdate.doctor.owners import owners_findings
from postdate.doctor.settings import settings_findings
from postdate.doctor.waiting import waiting_findings
from postdate.doctor.zone_rules import zone_rules_finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from postdate.app import Postdate
    from postdate.registry import ActionType

__all__ = ["Finding", "Health", "examine"]


def examine(app: Postdate, types: Sequence[ActionType]) -> Iterator[Finding]:
    """Look at everything that an engine with these types needs; nothing is changed, and nothing is sent.

    What needs the database is left out where the database cannot be used.
    """
    usable = yield from database_findings(app)
    yield zone_rules_finding()
    yield from action_type_findings(types)
    yield from settings_findings(app.settings, {action_type.name for action_type in types})
    if usable:
        try:
            yield from owners_findings(app)
            yield from holding_findings(app)
            yield from waiting_findings(app)
        except DBAPIError as error:
            yield unreadable(error)
