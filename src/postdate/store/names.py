"""What are our tables called in this database?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from postdate.errors import Misconfigured

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,19}")


@dataclass(frozen=True, kw_only=True)
class Names:
    """The schema (PostgreSQL only) and prefix that keep our tables apart from the host's."""

    schema: str = "postdate"
    prefix: str = ""

    def __post_init__(self) -> None:
        """Refuse what would need quoting: these names are written into SQL."""
        for field, value in (("schema", self.schema), ("table_prefix", self.prefix or "_")):
            if not _IDENTIFIER.fullmatch(value):
                message = f"{field} must be at most 20 lower-case letters, digits and underscores, not {value!r}"
                raise Misconfigured(message)

    @property
    def channel(self) -> str:
        """The NOTIFY channel of the alarm."""
        return f"{self.schema}_{self.prefix}alarm"

    @property
    def version_table(self) -> str:
        """The table that holds the schema's revision."""
        return f"{self.prefix}postdate_version"

    def qualifier(self, dialect: str) -> str:
        """Return what stands before each table's name in hand-written SQL."""
        return self.prefix if dialect == "sqlite" else f"{self.schema}.{self.prefix}"

    def tokens(self, dialect: str) -> dict[str, str]:
        """Return the names that migration scripts leave open."""
        return {"{ns}": self.qualifier(dialect), "{p}": self.prefix, "{channel}": self.channel}
