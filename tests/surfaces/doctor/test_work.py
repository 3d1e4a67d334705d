"""Does the doctor see what will not be run, and what is sent unsafely?"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from postdate import (
    ActionType,
    NotConfigured,
    Postdate,
    Reason,
    Settings,
    Status,
    UnknownActionType,
    builtin_action_types,
)
from postdate.cli import cli
from postdate.clock import ManualClock
from postdate.doctor import Finding, Health, zone_rules
from postdate.doctor.settings import settings_findings
from postdate.testing.factories import make_action
from tests.surfaces.docs.pages import ROOT, SOURCES, anchors
from tests.surfaces.doctor.conftest import found, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def fit(database_url: str, clock: ManualClock) -> Iterator[Postdate]:
    with opened(database_url) as app:
        app.kernel.clock = clock
        yield app


def test_how_much_waits_is_told(fit: Postdate) -> None:
    make_action(fit, Status.SUBMITTED, action_type="act")
    make_action(fit, action_type="act")
    make_action(fit, action_type="act")
    assert found(fit, "queue").found == "2 queued, 1 submitted"


def test_actions_of_a_type_that_nobody_here_handles_are_counted(fit: Postdate) -> None:
    for name in ("renamed", "renamed", "other"):
        elsewhere = fit.on(fit.settings.database_url, clock=fit.kernel.clock)
        elsewhere.kernel.registry = type(fit.kernel.registry)()
        elsewhere.action(name)(lambda ctx, payload: None)
        make_action(elsewhere, action_type=name)
        elsewhere.kernel.database.close_sync()
    handlers = found(fit, "handlers")
    assert (handlers.health, handlers.found) == (Health.WARN, "missing for 1 of other, 2 of renamed")


@pytest.mark.parametrize(("since", "health"), [(90, Health.OK), (150, Health.FAIL)])
def test_what_has_been_due_for_longer_than_a_tick_is_overdue(fit: Postdate, since: int, health: Health) -> None:
    make_action(fit, action_type="act", at=NOON - timedelta(seconds=since))
    assert found(fit, "overdue").health is health


@pytest.mark.parametrize(("after", "health"), [(1, Health.OK), (60, Health.FAIL)])
def test_leases_that_ran_out_long_ago_are_counted(
    fit: Postdate, clock: ManualClock, after: int, health: Health
) -> None:
    make_action(fit, Status.SUBMITTED, action_type="act")
    clock.advance(timedelta(minutes=after))
    leases = found(fit, "leases")
    assert (leases.health, leases.found) == (health, "none has run out" if after == 1 else "run out: 1 of act")


def test_what_waits_for_a_person_is_counted(fit: Postdate) -> None:
    make_action(fit, Status.FAILED, Reason.UNCONFIRMED, action_type="act")
    make_action(fit, Status.FAILED, Reason.REJECTED, action_type="act")
    unconfirmed = found(fit, "unconfirmed")
    assert (unconfirmed.health, unconfirmed.found) == (Health.WARN, "1 wait for a person")


def test_an_app_without_action_types_fires_nothing(sqlite_url: str) -> None:
    app = Postdate(sqlite_url)
    assert found(app, "action type").health is Health.WARN
    app.kernel.database.close_sync()


def test_a_type_that_lacks_a_setting_is_told_with_its_name(sqlite_url: str) -> None:
    def missing() -> None:
        raise NotConfigured("SHOP_KEY", needed_by="act", hint="any text")

    app = Postdate(sqlite_url)
    app.include(ActionType(name="act", handler=lambda ctx, payload: None, configured=missing))
    lacking = found(app, "action type")
    assert (lacking.health, lacking.found) == (Health.FAIL, "act needs SHOP_KEY: any text")
    assert str(lacking.advice).startswith("set SHOP_KEY,")
    app.kernel.database.close_sync()


@pytest.mark.parametrize(
    ("version", "today", "health"),
    [
        ("2026f", datetime(2026, 12, 31, tzinfo=UTC), Health.OK),
        ("2026f", datetime(2027, 6, 30, tzinfo=UTC), Health.OK),
        ("2026f", datetime(2027, 7, 1, tzinfo=UTC), Health.WARN),
        ("2025b", datetime(2027, 1, 1, tzinfo=UTC), Health.WARN),
    ],
)
def test_zone_rules_grow_old(monkeypatch: pytest.MonkeyPatch, version: str, today: datetime, health: Health) -> None:
    monkeypatch.setattr(zone_rules, "tzdata_version", lambda: (version, "system"))
    monkeypatch.setattr(zone_rules, "host_time", lambda: today)
    finding = zone_rules.zone_rules_finding()
    assert (finding.health, finding.found) == (health, f"tzdata {version}, the system's copy")


def of_settings(settings: Settings, *types: str) -> dict[str, Finding]:
    known = {action_type.name for action_type in builtin_action_types(settings)}
    if not known.issuperset(types):
        raise UnknownActionType(str(types), known=sorted(known))
    return {finding.check: finding for finding in settings_findings(settings, set(types))}


@pytest.mark.parametrize(
    ("url", "health"),
    [
        ("smtp://ana:s3cret@mail.example.com", Health.WARN),
        ("smtp://ana:s3cret@localhost", Health.OK),
        ("smtp://mail.example.com", Health.OK),
        ("smtps://ana:s3cret@mail.example.com", Health.OK),
        ("smtp+starttls://ana:s3cret@mail.example.com", Health.OK),
    ],
)
def test_a_password_that_travels_in_plain_text_is_told_and_not_shown(url: str, health: Health) -> None:
    seen = of_settings(Settings(smtp_url=SecretStr(url)), "send_email")
    assert seen["mail"].health is health
    assert "s3cret" not in str(seen)
    assert "RFC 8058" in str(seen["one-click unsubscribe"].advice)


def test_mail_that_goes_another_way_or_not_at_all_is_not_looked_at() -> None:
    plain = SecretStr("smtp://ana:s3cret@mail.example.com")
    assert of_settings(Settings(smtp_url=plain, email_provider="postmark"), "reminder") == {}
    assert "mail" not in of_settings(Settings(smtp_url=plain), "call_webhook")
    assert "mail" not in of_settings(Settings(smtp_url=SecretStr("gopher://x")), "send_email")


def test_webhooks_that_can_be_read_or_forged_are_told() -> None:
    bare = of_settings(Settings(), "call_webhook")
    assert bare["webhooks"].found == "are not signed"
    signed = Settings(webhook_secret=SecretStr("whsec_x"), webhook_allow_http=True, egress_allow="10.1.0.0/16")
    seen = of_settings(signed, "call_webhook")
    assert (seen["webhooks"].health, seen["webhooks"].found) == (Health.WARN, "may go to plain http addresses")
    assert "10.1.0.0/16" in seen["egress"].found
    assert of_settings(signed, "send_sms") == {}


def test_every_page_that_a_finding_names_exists() -> None:
    named = {
        page for file in (SOURCES / "doctor").glob("*.py") for page in re.findall(r'"([a-z]+#[^"]+)"', file.read_text())
    }
    assert len(named) > 5
    for page in named:
        name, _, anchor = page.partition("#")
        assert anchor in anchors(ROOT / "docs" / f"{name}.md"), page
        assert CliRunner().invoke(cli, ["docs", page]).output.startswith("#"), page
