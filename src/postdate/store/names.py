"""What are our tables called in this database?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS

from postdate.errors import Misconfigured

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,19}")
_HOST_TABLE = re.compile(r"(?:(?P<schema>[a-z_][a-z0-9_]{0,62})\.)?(?P<table>[a-z_][a-z0-9_]{0,62})")


@dataclass(frozen=True, kw_only=True)
class Names:
    """The schema (PostgreSQL only) and prefix that keep our tables apart from the host's.

    `profiles` and `workspaces` name tables of the host, as `table` or `schema.table`, that take the place of ours:
    their `id` is a uuid, and deleting a row removes its actions.
    """

    schema: str = "postdate"
    prefix: str = ""
    profiles: str | None = None
    workspaces: str | None = None

    def __post_init__(self) -> None:
        """Refuse what would need quoting: these names are written into SQL."""
        for field, value in (("schema", self.schema), ("table_prefix", self.prefix or "_")):
            if not _IDENTIFIER.fullmatch(value):
                rule = "must be at most 20 lower-case letters, digits and underscores"
                raise Misconfigured(f"{field} {rule}, not {value!r}")
        if self.schema in RESERVED_WORDS or self.schema.startswith("pg_"):
            raise Misconfigured(f"schema must not be a word that PostgreSQL keeps for itself, as {self.schema!r} is")
        for field, table in (("profiles_table", self.profiles), ("workspaces_table", self.workspaces)):
            if table is not None and not _HOST_TABLE.fullmatch(table):
                raise Misconfigured(f"{field} must be `table` or `schema.table` in lower case, not {table!r}")

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
        own = self.qualifier(dialect)
        return {
            "{ns}": own,
            "{p}": self.prefix,
            "{channel}": self.channel,
            "{profiles}": self.profiles or f"{own}profiles",
            "{workspaces}": self.workspaces or f"{own}workspaces",
        }


def host_table(name: str) -> tuple[str | None, str]:
    """Return the schema, where one is named, and the table."""
    schema, _, table = name.rpartition(".")
    return schema or None, table
