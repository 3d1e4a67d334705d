"""Does a database keep what postdate's store promises?

For those who run postdate where we did not: another server or version, a managed PostgreSQL, a pooler, a schema and
prefix of their own, or triggers, rules and privileges beside ours. Subclass the suite of your database in a test module
and give each case a database of its own:

    class TestOurDatabase(PostgresConformance):
        @pytest.fixture
        def database_url(self, postdate_url: str) -> str:
            return postdate_url

`postdate_url` comes from `postdate.testing.pytest_plugin`; any fixture will do that gives the URL of a migrated
database which no other case has used. Override `settings` for a schema or prefix of your own. Each case says in its
docstring which promise it shows, by number.

`SqliteConformance` and `PostgresConformance` hold what is true of every database, `StoreConformance`, and what is true
of theirs. A part of it is a class of its own in `cases`; `Fixtures` brings what the cases ask for.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("postdate.testing.conformance.cases")  # so that a failed case shows its values

from postdate.testing.conformance.suite import (
    Fixtures,
    PostgresConformance,
    SqliteConformance,
    StoreConformance,
)

__all__ = ["Fixtures", "PostgresConformance", "SqliteConformance", "StoreConformance"]
