"""What does the installed program do that no call within a process shows?"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from postdate.cli.bulk import BATCH_ROWS
from tests.surfaces.cli.program import PATIENCE, SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.program import Program
    from tests.surfaces.cli.shell import Shell

AT = ("--at", "2099-03-14T09:00Z")


def test_python_m_postdate_is_the_same_program() -> None:
    answer = subprocess.run([sys.executable, "-m", "postdate", "--version"], capture_output=True, check=True)
    assert answer.stdout.decode() == f"postdate {version('postdate')}\n"


def test_a_terminal_that_knows_no_accents_is_no_reason_to_fail(on_sqlite: Shell, local: Program) -> None:
    on_sqlite.reminder("--thing", "Olá")
    ascii_only = local.environment | {"PYTHONIOENCODING": "ascii"}
    people, programs = (
        subprocess.run([SCRIPT, *command], env=ascii_only, capture_output=True, check=True).stdout
        for command in (["list"], ["list", "--json"])
    )
    assert b"thing Ol\\xe1" in people
    assert json.loads(programs)["thing_id"] == "Olá"


def test_a_reader_that_goes_away_ends_the_program_quietly(on_sqlite: Shell, local: Program) -> None:
    on_sqlite.reminder()
    for command in (("list",), ("list", "--json")):
        reading, writing = os.pipe()
        os.close(reading)
        running = local.start(*command, stdout=writing)
        os.close(writing)
        assert running.ended() == 128 + signal.SIGPIPE
        assert running.said == []


def test_rows_are_scheduled_while_more_are_still_to_come_and_ctrl_c_says_how_far_it_got(
    local: Program, on_sqlite: Shell
) -> None:
    running = local.start("schedule", "reminder", "--csv", "-", *AT, "--json", stdout=subprocess.PIPE)
    stdin, stdout = running.process.stdin, running.process.stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(b"text\n" + b"Hi\n" * (BATCH_ROWS + 10))
    stdin.flush()
    lines = [json.loads(stdout.readline())["line"] for _ in range(BATCH_ROWS)]
    assert lines == list(range(2, BATCH_ROWS + 2))
    running.signal(signal.SIGINT)
    assert running.ended() == 130
    assert running.said == [
        f"postdate: stopped after the row of line {BATCH_ROWS + 1}: {BATCH_ROWS} scheduled, 0 refused\n",
        "postdate: interrupted\n",
    ]
    assert len(on_sqlite.done("list", "--limit", "10000", "--json").json_lines) == BATCH_ROWS


# The kernel's own record of the peak; the one of `wait4` counts what the test's process held when it forked.
MEASURED = """
import sys
from postdate.cli import main
try:
    main()
finally:
    print(*(line for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
"""


def peak_memory(local: Program, file: Path) -> int:
    """Return how many bytes scheduling a file took at most."""
    answer = subprocess.run(
        [sys.executable, "-c", MEASURED, "schedule", "reminder", "--csv", str(file), *AT],
        env=local.environment,
        capture_output=True,
        check=True,
    )
    return int(answer.stderr.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_file_of_20000_lines_takes_no_more_memory_than_one_of_500(local: Program, elsewhere: Path) -> None:
    peaks = []
    for count in (500, 20_000):
        file = elsewhere / f"{count}.csv"
        file.write_text("text\n" + ("x" * 1000 + "\n") * count)
        peaks.append(peak_memory(local, file))
    small, large = peaks
    assert large - small < 8_000_000, "20 MB went through it"


def test_on_a_terminal_a_file_shows_how_far_it_got_and_errors_stay_readable(local: Program, elsewhere: Path) -> None:
    (elsewhere / "rows.csv").write_text("text,at\nHi,\nHo,never\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [SCRIPT, "schedule", "reminder", "--csv", "rows.csv", *AT, "--tz", "Asia/Tokyo"],
        env=local.environment | {"TERM": "xterm", "COLUMNS": "200"},
        cwd=elsewhere,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    out, _ = process.communicate(timeout=PATIENCE)
    shown = drained(ours)
    assert (process.returncode, out) == (5, b"1 scheduled, 1 refused\n")
    assert "postdate: line 3: at: must have the form" in shown
    assert "1 scheduled, 1 refused" in shown
    assert "100%" in shown


def test_on_a_terminal_serve_logs_for_people(local: Program, elsewhere: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [SCRIPT, "serve", "--types", "reminder"], env=local.environment, cwd=elsewhere, stderr=theirs
    )
    os.close(theirs)
    shown = ""
    while "serving" not in shown:
        shown += os.read(ours, 1024).decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    shown += drained(ours)
    assert "stopped" in shown
    assert "{" not in shown


def test_nobody_writes_to_the_operators_terminal_but_the_program(
    on_sqlite: Shell, local: Program, elsewhere: Path
) -> None:
    """A payload may come from anybody: it forges no line, and changes no colour and no title."""
    forged = "Hi\r\n\x1b[2J\x1b]0;owned\x07 2099-03-14 [info] all is well"
    on_sqlite.done("schedule", "reminder", "--set", f"text={forged}", "--at", "2026-01-01T00:00Z")
    ours, theirs = pty.openpty()
    command = [SCRIPT, "serve", "--types", "reminder"]
    process = subprocess.Popen(command, env=local.environment, cwd=elsewhere, stderr=theirs)
    os.close(theirs)
    shown = ""
    while "all is well" not in shown:
        shown += os.read(ours, 1024).decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    shown += drained(ours)
    assert "owned" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b]0;" not in shown
    assert [line for line in shown.splitlines() if "all is well" in line and "Hi" not in line] == []


def drained(terminal: int) -> str:
    """Return what is left to read on a terminal that nobody writes to any more."""
    said = b""
    try:
        while chunk := os.read(terminal, 65536):
            said += chunk
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(terminal)
    return said.decode()
