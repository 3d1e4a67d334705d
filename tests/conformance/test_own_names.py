"""Do triggers and deletion work under a schema and prefix of the host's choice?"""

from __future__ import annotations

import pytest

from postdate import Postdate, Settings
from postdate.testing.conformance import Fixtures
from postdate.testing.conformance.cases.deletion import DeletionCases
from postdate.testing.conformance.cases.frozen import FrozenCases


class TestOwnNames(Fixtures, DeletionCases, FrozenCases):
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(schema_name="shop", table_prefix="pd_")

    @pytest.fixture
    def database_url(self, empty_database_url: str, settings: Settings) -> str:
        Postdate(empty_database_url, settings=settings).migrate()
        return empty_database_url
