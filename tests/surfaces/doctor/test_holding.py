"""Does `doctor` tell what is paused or on hold?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from postdate.clock import ManualClock
from postdate.doctor import Health
from postdate.domain.instant import rfc3339
from postdate.testing.factories import make_action, make_workspace
from tests.surfaces.doctor.conftest import found, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate import Postdate

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.fixture
def fit(database_url: str) -> Iterator[Postdate]:
    with opened(database_url) as app:
        app.kernel.clock = ManualClock(NOON)
        yield app


def test_what_is_paused_is_told_and_not_called_overdue(fit: Postdate) -> None:
    assert [found(fit, check).health for check in ("pauses", "hold")] == [Health.OK, Health.OK]
    workspace = make_workspace(fit)
    make_action(fit, action_type="act", at=NOON - timedelta(hours=1))
    assert found(fit, "overdue").health is Health.FAIL
    fit.sync.pause(action_type="act")
    fit.sync.pause(workspace=workspace)
    assert found(fit, "overdue").health is Health.OK
    pauses = found(fit, "pauses")
    assert pauses.health is Health.WARN
    assert pauses.found == f"act since {rfc3339(NOON)}; workspace {workspace} since {rfc3339(NOON)}"


def test_of_many_pauses_some_are_told(fit: Postdate) -> None:
    for number in range(7):
        fit.sync.pause(action_type=f"type-{number}")
    assert found(fit, "pauses").found.endswith("; and 2 more")


def test_an_installation_on_hold_has_to_be_mended(fit: Postdate) -> None:
    with fit.kernel.transaction(None) as tx:
        tx.execute(update(tx.tables.heartbeat).values(held_at=NOON, held_because="it is old"))
    hold = found(fit, "hold")
    assert (hold.health, hold.found) == (Health.FAIL, f"since {rfc3339(NOON)}: it is old")
    assert "postdate release" in str(hold.advice)
