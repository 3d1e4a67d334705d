"""Do guard, view, history and deletion work under a schema and prefix of the host's choice?"""

from __future__ import annotations

import pytest

from postdate import Postdate, Settings
from postdate.testing.conformance import Fixtures
from postdate.testing.conformance.cases.deletion import DeletionCases
from postdate.testing.conformance.cases.frozen import FrozenCases
from postdate.testing.conformance.cases.guard import PublishGuardCases
from postdate.testing.conformance.cases.view import ViewCases


class TestOwnNames(Fixtures):
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(schema_name="shop", table_prefix="pd_")

    @pytest.fixture
    def database_url(self, empty_database_url: str, settings: Settings) -> str:
        Postdate(empty_database_url, settings=settings).migrate()
        return empty_database_url

    test_guard = PublishGuardCases.test_the_view_and_the_queue_itself_refuse_it
    test_view = ViewCases.test_a_bare_insert_schedules
    test_cancel = ViewCases.test_an_update_cancels_what_is_queued
    test_requests = FrozenCases.test_an_actions_row_is_never_updated
    test_history = FrozenCases.test_history_is_append_only
    test_deletion = DeletionCases.test_deleting_an_owner_removes_its_actions_wherever_they_stand
