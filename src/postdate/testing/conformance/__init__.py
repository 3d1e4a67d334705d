"""Does a database keep the promises that postdate's store makes?"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("postdate.testing.conformance.cases")  # so that a failed case shows its values

from postdate.testing.conformance.suite import PostgresConformance, SqliteConformance, StoreConformance

__all__ = ["PostgresConformance", "SqliteConformance", "StoreConformance"]
