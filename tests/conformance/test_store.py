"""Does each database keep the contract of the store?"""

from __future__ import annotations

import pytest

from postdate.testing.conformance import PostgresConformance, SqliteConformance


class TestSqlite(SqliteConformance):
    @pytest.fixture
    def database_url(self, sqlite_url: str) -> str:
        return sqlite_url


class TestPostgres(PostgresConformance):
    @pytest.fixture
    def database_url(self, postgres_url: str) -> str:
        return postgres_url
