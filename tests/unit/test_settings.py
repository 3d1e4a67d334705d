"""Which settings are refused when they are read, rather than when something is due?"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from postdate import Postdate, builtin_action_types
from postdate.errors import Misconfigured
from postdate.settings import Settings, read_settings

SECRET = "c2VjcmV0" * 5  # base64 too, and so a key
SECRETS: dict[str, Any] = {
    "database_url": f"postgresql://shop:{SECRET}@db.test/shop",
    "smtp_url": f"smtp://shop:{SECRET}@mail.test",
    "smtp_from": "shop@shop.test",
    "email_provider": "smtp",
    "postmark_token": SECRET,
    "postmark_from": "shop@shop.test",
    "twilio_account_sid": "AC" + "0" * 32,
    "twilio_auth_token": SECRET,
    "twilio_from": "+15005550006",
    "webhook_secret": f"whsec_{SECRET}",
    "networks": {"instagram": f"https://hooks.test/{SECRET}"},
}


def test_nothing_that_is_made_of_secrets_shows_them() -> None:
    app = Postdate(settings=Settings(**SECRETS))
    app.include(*builtin_action_types(app.settings))
    for each in (app, app.settings, app.kernel, app.kernel.database, *app.kernel.registry):
        assert SECRET not in repr(each)
        assert SECRET not in str(each)


@pytest.mark.parametrize("name", SECRETS)
def test_a_setting_of_another_type_is_refused_without_being_shown(name: str) -> None:
    wrong: dict[str, Any] = {name: [SECRET]}
    with pytest.raises(ValidationError) as refused:
        Settings(**wrong)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("variable", ["POSTDATE_LEASE_MARGIN", "POSTDATE_IDEMPOTENCY_TTL", "POSTDATE_STOP_GRACE"])
def test_no_duration_leads_out_of_the_calendar(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1e12")
    with pytest.raises(Misconfigured, match=variable):
        read_settings()


@pytest.mark.parametrize("odd", ["5m", "", "soon", "nan", "inf"])
def test_a_duration_that_is_none_is_told_in_which_form_it_is_read(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTDATE_LEASE", odd)
    with pytest.raises(Misconfigured) as refused:
        read_settings()
    assert str(refused.value) == "POSTDATE_LEASE: must be seconds, as in 45, or ISO 8601, as in PT45S"
