"""Does the store keep its contract by asyncpg, too, where the URL names it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url

from postdate import Context, Deferred
from postdate.testing.conformance import Fixtures
from postdate.testing.conformance.cases.claimed import ClaimedCases
from postdate.testing.conformance.cases.fence import FenceCases
from postdate.testing.conformance.cases.instants import FIRST, LAST, InstantCases
from postdate.testing.conformance.cases.payloads import PayloadCases
from postdate.testing.conformance.cases.transactions import TransactionCases
from postdate.testing.scene import POST, Scene

if TYPE_CHECKING:
    from postdate.testing.conformance.caller import Kind


def _wait_for_ever(_ctx: Context) -> None:
    raise Deferred(LAST)


class TestAsyncpg(Fixtures, TransactionCases, ClaimedCases, FenceCases, PayloadCases, InstantCases):
    @pytest.fixture
    def database_url(self, postgres_url: str) -> str:
        return make_url(postgres_url).set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)

    def test_the_last_instant_can_be_waited_for(self, scene: Scene) -> None:
        """P17: and so can the first; as parameters of their own, asyncpg would make infinities of them."""
        scene.answer = _wait_for_ever
        never = scene.await_(scene.app.schedule(POST, {}, at=LAST, expires_at=LAST))
        ever = scene.await_(scene.app.schedule(POST, {}, at=FIRST))
        assert (scene.get(never).publish_at, scene.get(never).expires_at) == (LAST, LAST)
        assert scene.get(ever).publish_at == FIRST
        scene.tick()
        assert scene.get(ever).next_attempt_at == LAST

    @pytest.fixture(params=["async connection", "async session"])
    def kind(self, request: pytest.FixtureRequest) -> Kind:
        kind: Kind = request.param
        return kind
