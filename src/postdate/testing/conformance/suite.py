"""Which cases does a database have to pass?"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from postdate.settings import Settings
from postdate.testing.conformance.cases.batches import BatchCases
from postdate.testing.conformance.cases.claimed import ClaimedCases
from postdate.testing.conformance.cases.concurrency import ConcurrencyCases
from postdate.testing.conformance.cases.concurrent_deletion import ConcurrentDeletionCases
from postdate.testing.conformance.cases.deletion import DeletionCases
from postdate.testing.conformance.cases.fence import FenceCases
from postdate.testing.conformance.cases.frozen import FrozenCases
from postdate.testing.conformance.cases.guard import PublishGuardCases, VerdictCases
from postdate.testing.conformance.cases.idempotency import IdempotencyCases
from postdate.testing.conformance.cases.instants import InstantCases
from postdate.testing.conformance.cases.isolation import IsolationCases
from postdate.testing.conformance.cases.keys import KeyCases
from postdate.testing.conformance.cases.moving import MovingCases
from postdate.testing.conformance.cases.odd_rows import OddRowCases
from postdate.testing.conformance.cases.pauses import PauseCases
from postdate.testing.conformance.cases.payloads import PayloadCases
from postdate.testing.conformance.cases.postgres_view import PostgresViewCases
from postdate.testing.conformance.cases.rescheduling import ReschedulingCases
from postdate.testing.conformance.cases.sessions import SessionCases
from postdate.testing.conformance.cases.sqlite_view import SqliteViewCases
from postdate.testing.conformance.cases.texts import TextCases
from postdate.testing.conformance.cases.transactions import TransactionCases
from postdate.testing.conformance.cases.view import ViewCases
from postdate.testing.conformance.outsider import Outsider
from postdate.testing.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator


@cache
def _settings() -> Settings:
    return Settings()


class Fixtures:
    """What the cases ask for. `database_url` is yours: the URL of a migrated database that no other case has used."""

    @pytest.fixture
    def settings(self) -> Settings:
        """The settings of the app: override it for a schema or a prefix of your own."""
        return _settings()

    @pytest.fixture
    def scene(self, database_url: str, settings: Settings) -> Iterator[Scene]:
        """An app on the database, on a clock that the case moves."""
        with Scene.on(database_url, settings=settings) as scene:
            yield scene

    @pytest.fixture
    def outsider(self, scene: Scene) -> Iterator[Outsider]:
        """Another program at the same database."""
        outsider = Outsider(scene)
        yield outsider
        outsider.close()


class StoreConformance(
    Fixtures,
    MovingCases,
    ClaimedCases,
    KeyCases,
    PublishGuardCases,
    VerdictCases,
    FenceCases,
    ReschedulingCases,
    TransactionCases,
    BatchCases,
    IdempotencyCases,
    ViewCases,
    OddRowCases,
    DeletionCases,
    FrozenCases,
    PauseCases,
    TextCases,
    PayloadCases,
    InstantCases,
):
    """What holds on every database."""


class SqliteConformance(StoreConformance, SqliteViewCases):
    """What holds on SQLite."""


class PostgresConformance(
    StoreConformance, PostgresViewCases, IsolationCases, SessionCases, ConcurrencyCases, ConcurrentDeletionCases
):
    """What holds on PostgreSQL."""
