"""How old are the zone rules in force, and whose are they?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.clock import host_time
from postdate.doctor.finding import ok, warn
from postdate.domain.zones import tzdata_version

if TYPE_CHECKING:
    from postdate.doctor.finding import Finding

_SOURCES = {"system": "the system's copy", "package": "the tzdata package's copy"}
_FIRST_OF_THE_YEAR_IS_OUT = 7
"""The month from which on last year's rules are old: every year of the last thirty had a release by June."""


def zone_rules_finding() -> Finding:
    """Say which version of the tz database is in force; it is stale where this year's must have come out since."""
    version, source = tzdata_version()
    found = f"tzdata {version}, {_SOURCES[source]}"
    today = host_time()
    age = today.year - int(version[:4])
    if age > 1 or (age == 1 and today.month >= _FIRST_OF_THE_YEAR_IS_OUT):
        advice = "wall times are read by old rules: upgrade the tzdata package, or the system's, and restart"
        return warn("zone rules", found, advice=advice, page="operations#zone-rules")
    return ok("zone rules", found)
