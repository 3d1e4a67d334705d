"""Does `python -m demo` show what it promises, and leave nothing behind?

Each test gives the demo a folder of its own for temporary files, and looks afterwards for files in it and for
processes that were started with it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postdate.testing.postgres import available

if TYPE_CHECKING:
    from collections.abc import Iterator

UUID = "[0-9a-f]{8}-[0-9a-f-]{27}"
pytestmark = pytest.mark.timeout(300)  # many programs start here, one after the other
ROOT = Path(__file__).parents[3]
# Other tests run at the same time: this is about what the demo does, not about how fast the machine is.
SHORT = ("--seconds", "3", "--rows", "12", "--late-after", "10")
DATABASES = ["", pytest.param("--postgres", marks=pytest.mark.skipif(not available(), reason="no PostgreSQL here"))]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="postdate-test-demo-") as made:
        Path(made).chmod(0o755)  # where this is root, PostgreSQL runs as somebody else
        yield Path(made)


@contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "demo", *filter(None, arguments)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(folder), "POSTDATE_SCHEMA": "the_readers_own"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def started_in(folder: Path) -> dict[int, str]:
    """The processes, by their ids, that were told to keep their temporary files in `folder`."""
    found = {}
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}\0".encode() in environment.read_bytes():
                found[int(environment.parent.name)] = (environment.parent / "cmdline").read_text()
        except OSError:
            continue  # it has ended meanwhile
    return found


def left_behind(folder: Path) -> list[str]:
    return [*started_in(folder).values(), *map(str, folder.iterdir())]


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout
    read = ""
    for line in process.stdout:
        read += line
        if text in line:
            return read
    pytest.fail(f"{text!r} was never said:\n{read}")


@pytest.mark.parametrize("database", DATABASES)
def test_with_exit_it_ends_well_once_everything_has_arrived(folder: Path, database: str) -> None:
    with demo(folder, "--exit", database, *SHORT) as process:
        said, _ = process.communicate()
    assert process.returncode == 0, said
    assert re.search(r"12 sent · 0 lost · 0 doubled · 0 early · 0 late · lateness p50 \d+", said), said
    assert left_behind(folder) == []


def test_without_it_what_it_says_to_try_works_until_ctrl_c(folder: Path) -> None:
    with demo(folder, *SHORT) as process:
        said = read_until(process, "12 sent") + read_until(process, "Ctrl-C")
        exports = "\n".join(re.findall(r"^  export .*$", said, re.MULTILINE))
        commands = re.findall(r"^  (postdate (?:.*\\\n)*.*)$", said.partition("export PATH")[2], re.MULTILINE)
        shown, call, mail, queued, now, cancel = (f"set -e\n{exports}\n{command}" for command in commands)
        assert sh(shown).count('"status": "published"') == 12
        sh(call)
        assert "webhook to /hello" in read_until(process, "/hello")
        sh(mail)
        (action,) = re.findall(UUID, sh(queued))
        sh(now.replace("ID", action))
        assert "e-mail to you@example.com: Hello" in read_until(process, "Hello")
        (action,) = re.findall(UUID, sh(mail))
        assert "cancelled" in sh(cancel.replace("ID", action))
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0
    assert left_behind(folder) == []


def sh(script: str) -> str:
    return subprocess.run(["/bin/sh", "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize(
    ("moment", "stop"),
    [
        ("Setting up", signal.SIGINT),
        ("postdate db upgrade", signal.SIGTERM),
        ("postdate serve", signal.SIGINT),
        ("postdate schedule", signal.SIGTERM),
        ("lateness", signal.SIGHUP),
    ],
)
def test_whenever_it_is_stopped_it_leaves_nothing_behind(folder: Path, moment: str, stop: signal.Signals) -> None:
    with demo(folder, "--seconds", "3600") as process:
        read_until(process, moment)
        process.send_signal(stop)
        process.send_signal(stop)  # impatience changes nothing
        said, _ = process.communicate()
    assert said.endswith("Stopped.\n"), said
    assert process.returncode == 130
    assert left_behind(folder) == []


def test_it_fails_and_says_so_when_the_engine_dies_and_leaves_nothing_behind(folder: Path) -> None:
    with demo(folder, "--exit", "--seconds", "3600") as process:
        read_until(process, "lateness")
        (serve,) = [each for each, command in started_in(folder).items() if "serve" in command]
        os.kill(serve, signal.SIGKILL)
        said, _ = process.communicate()
    assert process.returncode == 1
    assert "postdate serve --types send_email,call_webhook" in said
    assert left_behind(folder) == []
