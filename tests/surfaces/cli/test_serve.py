"""Does `postdate serve` fire what is due, stop when it is told to, and refuse what it cannot do?"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url

from postdate import Postdate, Status
from tests.surfaces.cli.receiver import Receiver, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.surfaces.cli.program import Program
    from tests.surfaces.cli.shell import Shell

WEBHOOK = {"POSTDATE_WEBHOOK_ALLOW_HTTP": "true", "POSTDATE_EGRESS_ALLOW": "127.0.0.0/8"}
NOW = "2020-01-01T00:00Z"
SERVED = ("--types", "call_webhook,reminder")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def call(postdate: Shell, receiver: Receiver, path: str, *, at: str = NOW) -> str:
    """Schedule a webhook and return its id."""
    url = f"url={receiver.url}{path}"
    return str(postdate.done("schedule", "call_webhook", "--set", url, "--at", at, "--json", **WEBHOOK).json["id"])


def status(database_url: str, action: str) -> Status:
    app = Postdate(database_url)
    found = app.sync.get(action)
    app.kernel.database.close_sync()
    return found.status


def test_what_is_due_is_fired_and_sigterm_lets_a_run_end(
    postdate: Shell, program: Program, receiver: Receiver, database_url: str
) -> None:
    action = call(postdate, receiver, "/due")
    receiver.may_answer.clear()
    serving = program.serving(*SERVED, **WEBHOOK)
    assert receiver.next_path() == "/due"
    serving.signal(signal.SIGTERM)
    assert serving.wait_for("stopping")["signal"] == "SIGTERM"
    receiver.may_answer.set()
    assert serving.ended() == 0
    assert status(database_url, action) is Status.PUBLISHED
    events = [json.loads(line)["event"] for line in serving.said]
    assert events == ["serving", "stopping", "stopped"]


def test_what_another_process_schedules_is_noticed_before_the_tick(
    postdate: Shell, program: Program, receiver: Receiver
) -> None:
    serving = program.serving(*SERVED, **WEBHOOK)
    call(postdate, receiver, "/from-elsewhere")
    assert receiver.next_path() == "/from-elsewhere"
    serving.signal(signal.SIGINT)
    assert serving.ended() == 0


def test_one_line_says_what_is_served_and_shows_no_password(program: Program, database_url: str) -> None:
    url = make_url(database_url)
    if url.get_backend_name() == "postgresql":
        url = url.set(password="s3cret", query={"application_name": "s3cret"})  # the server trusts everyone
    program.environment["POSTDATE_DATABASE_URL"] = url.render_as_string(hide_password=False)
    serving = program.start("serve", *SERVED)
    told = serving.wait_for("serving")
    serving.signal(signal.SIGTERM)
    assert serving.ended() == 0
    assert told["types"] == ["call_webhook", "reminder"]
    assert told["database"].endswith(str(url.database))
    assert told["worker"].endswith(f":{serving.process.pid}")
    assert "s3cret" not in "".join(serving.said)


WORKER = """
import asyncio, os, signal
from postdate import Postdate

app = Postdate()

@app.action("die", timeout=0.3)
async def die(ctx, payload):
    os.kill(os.getpid(), signal.SIGKILL)

@app.action("hang", timeout=600)
async def hang(ctx, payload):
    ctx.log.info("hanging")
    await asyncio.Event().wait()

@app.action("note")
async def note(ctx, payload):
    ctx.log.info("noted", attempt=ctx.attempt)
"""


def test_after_a_kill_the_next_process_settles_what_was_running_and_goes_on(
    postdate: Shell, program: Program, modules: Path
) -> None:
    """A run that may have gone out is never repeated on its own: it waits for a person."""
    (modules / "worker.py").write_text(WORKER)
    at_once = {"POSTDATE_LEASE_MARGIN": "0"}  # the lease has run out before the next process is up
    schedule = ("schedule", "--app", "worker:app", "--at", NOW, "--json")
    doomed = postdate.done(*schedule, "die").json["id"]
    killed = program.start("serve", "worker:app", settings=at_once)
    assert killed.ended() == -signal.SIGKILL
    assert postdate.done("show", doomed, "--json").json["status"] == "submitted"
    postdate.done(*schedule, "note")
    serving = program.serving("worker:app", **at_once)
    assert serving.wait_for("noted")["attempt"] == 1
    serving.signal(signal.SIGTERM)
    assert serving.ended() == 0
    shown = postdate.done("show", doomed, "--json").json
    assert (shown["status"], shown["reason"], shown["attempt_count"]) == ("failed", "unconfirmed", 1)


def test_a_second_signal_cuts_off_what_is_running(on_sqlite: Shell, local: Program, modules: Path) -> None:
    (modules / "worker.py").write_text(WORKER)
    action = on_sqlite.done("schedule", "--app", "worker:app", "hang", "--at", NOW, "--json").json["id"]
    serving = local.serving("worker:app")
    serving.wait_for("hanging")
    serving.signal(signal.SIGTERM)
    serving.wait_for("stopping")
    serving.signal(signal.SIGTERM)
    assert serving.ended() == -signal.SIGTERM
    assert on_sqlite.done("show", action, "--json").json["status"] == "submitted"


def test_two_processes_share_the_work_and_fire_each_action_once(
    postdate: Shell, program: Program, receiver: Receiver, database_url: str
) -> None:
    rows = "url\n" + "".join(f"{receiver.url}/{number}\n" for number in range(60))
    answer = postdate("schedule", "call_webhook", "--csv", "-", "--at", NOW, stdin=rows, **WEBHOOK)
    assert answer.out == "60 scheduled, 0 refused\n"
    both = [program.start("serve", *SERVED, settings=WEBHOOK) for _ in range(2)]
    paths = [receiver.next_path() for _ in range(60)]
    for serving in both:
        serving.wait_for("serving")
        serving.signal(signal.SIGTERM)
    assert [serving.ended() for serving in both] == [0, 0]
    assert sorted(paths) == sorted(f"/{number}" for number in range(60))
    assert receiver.paths.empty()
    assert len(postdate.done("list", "--status", "published", "--json").json_lines) == 60


NEEDY = """
from postdate import ActionType, NotConfigured, Postdate

app = Postdate()

def needs(setting):
    def check():
        raise NotConfigured(setting, needed_by="it", hint="such as x")
    return check

async def run(ctx, payload): ...

app.include(
    ActionType(name="a", handler=run, configured=needs("SHOP_A")),
    ActionType(name="b", handler=run),
    ActionType(name="c", handler=run, configured=needs("SHOP_C")),
    ActionType(name="d", handler=run, configured=lambda: None),
)
"""


def test_settings_that_are_missing_are_told_at_start_with_a_way_out(on_sqlite: Shell, modules: Path) -> None:
    (modules / "needy_shop.py").write_text(NEEDY)
    answer = on_sqlite("serve", "needy_shop:app")
    assert (answer.code, answer.out) == (4, "")
    assert answer.err == (
        "postdate: it needs SHOP_A: such as x; it needs SHOP_C: such as x (or serve without: --types b,d)\n"
    )


def test_without_a_mail_server_nothing_that_sends_e_mails_is_served(on_sqlite: Shell) -> None:
    answer = on_sqlite("serve", "--types", "send_email,reminder")
    assert answer.code == 4
    assert answer.err.startswith("postdate: send_email needs POSTDATE_SMTP_URL: such as smtp://")


def test_where_nothing_is_left_to_serve_only_the_setting_is_told(on_sqlite: Shell) -> None:
    answer = on_sqlite("serve", "--types", "send_email", POSTDATE_SMTP_URL="smtp://localhost")
    assert answer.code == 4
    assert answer.err == "postdate: send_email needs POSTDATE_SMTP_FROM: such as Shop <shop@example.com>\n"


def test_what_nobody_has_set_up_is_not_served_and_that_is_told_once(on_sqlite: Shell, local: Program) -> None:
    serving = local.start("worker")
    assert serving.wait_for("serving")["types"] == ["call_webhook", "reminder"]
    told = serving.wait_for("action types that are not set up are not served")
    serving.signal(signal.SIGTERM)
    assert serving.ended() == 0
    assert told["types"] == ["send_email", "send_sms", "publish_post"]
    assert told["missing"][0] == "send_email needs POSTDATE_SMTP_URL: such as smtp://localhost:25"
    assert sum("not served" in line for line in serving.said) == 1


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"POSTDATE_SMTP_URL": "smtp://localhost"}, "send_email needs POSTDATE_SMTP_FROM"),
        ({"POSTDATE_TWILIO_FROM": "+15005550006"}, "send_sms needs POSTDATE_TWILIO_ACCOUNT_SID"),
        ({"POSTDATE_NETWORKS": '{"instagram": "https://example.com"}'}, "publish_post needs POSTDATE_WEBHOOK_SECRET"),
    ],
)
def test_what_is_half_set_up_is_not_left_out_in_silence(on_sqlite: Shell, setting: dict[str, str], said: str) -> None:
    answer = on_sqlite("serve", **setting)
    assert answer.code == 4
    assert said in answer.err


@pytest.mark.parametrize(
    ("types", "said"),
    [("reminder,nope", "action_type: is not registered"), ("", "types: must be names"), ("a,,b", "types: must be")],
)
def test_types_that_do_not_exist_are_refused(on_sqlite: Shell, types: str, said: str) -> None:
    answer = on_sqlite("serve", "--types", types)
    assert answer.code == 2
    assert answer.err.startswith(f"postdate: {said}")


def test_an_application_without_types_has_nothing_to_serve(on_sqlite: Shell, modules: Path) -> None:
    (modules / "bare.py").write_text("from postdate import Postdate\napp = Postdate()\n")
    answer = on_sqlite("serve", "bare:app")
    assert (answer.code, answer.err) == (
        4,
        "postdate: the application has no action types: there is nothing to serve\n",
    )


def test_a_level_of_logging_that_does_not_exist_is_wrong_usage(on_sqlite: Shell) -> None:
    assert on_sqlite("serve", "--log-level", "loud").code == 2
