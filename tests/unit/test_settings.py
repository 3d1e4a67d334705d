"""Which settings are refused when they are read, rather than when something is due?"""

from __future__ import annotations

import pytest

from postdate.errors import Misconfigured
from postdate.settings import read_settings


@pytest.mark.parametrize("variable", ["POSTDATE_LEASE_MARGIN", "POSTDATE_IDEMPOTENCY_TTL", "POSTDATE_STOP_GRACE"])
def test_no_duration_leads_out_of_the_calendar(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1e12")
    with pytest.raises(Misconfigured, match=variable):
        read_settings()
