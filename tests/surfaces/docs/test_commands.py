"""Do the commands on the pages exist, and do those of the README run for somebody who has just begun?"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from typer.testing import CliRunner

from postdate.cli import cli
from tests.surfaces.docs.pages import ROOT, blocks, spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

README = ROOT / "README.md"
WITH_COMMANDS = ("README.md", "docs/embedding.md", "docs/operations.md", "docs/webhooks.md")
PLACEHOLDERS = {"ACTION": str(UUID(int=7)), "ID": "sms-2"}


def commands(lines: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of the `postdate` commands among the lines."""
    for line in lines:
        program, *arguments = shlex.split(line, comments=True) or [""]
        if program == "postdate" and arguments:
            yield tuple(PLACEHOLDERS.get(argument, argument) for argument in arguments)


def in_blocks(page: Path) -> Iterator[tuple[str, ...]]:
    return commands(line for block in blocks(page) if not block.language for line in block.text.splitlines())


def in_spans(page: Path) -> Iterator[tuple[str, ...]]:
    return commands(span for span in spans(page) if span.startswith("postdate "))


TOLD = dict.fromkeys(command for name in WITH_COMMANDS for command in (*in_blocks(ROOT / name), *in_spans(ROOT / name)))


def start(arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start `postdate` as somebody who has no settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTDATE_")}
    command = [sys.executable, "-W", "error", "-m", "postdate", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def run(arguments: Sequence[str], folder: Path) -> str:
    """Run a command to its good end and return what it printed."""
    with start(arguments, folder) as process:
        printed, complaint = process.communicate(timeout=60)
    assert process.returncode == 0, complaint
    return printed


@pytest.mark.parametrize("arguments", TOLD, ids=shlex.join)
def test_a_command_on_a_page_exists_with_these_options(arguments: tuple[str, ...]) -> None:
    # options are read before --help is heeded, so one that does not exist is told
    told = CliRunner().invoke(cli, [*arguments, "--help"])
    assert told.exit_code == 0, told.output
    assert f"Usage: postdate {arguments[0]}" in told.output


def test_an_option_that_does_not_exist_would_be_noticed() -> None:
    assert CliRunner().invoke(cli, ["list", "--colour", "red", "--help"]).exit_code == 2


def test_the_commands_of_the_readme_run_in_an_empty_folder(tmp_path: Path) -> None:
    upgrade, schedule, serve, unconfirmed, retry = in_blocks(README)
    run(upgrade, tmp_path)
    run(schedule, tmp_path)
    with start(serve, tmp_path) as server:
        assert server.stderr
        assert '"serving"' in server.stderr.readline()
        server.terminate()
    assert server.returncode == 0
    assert not run(unconfirmed, tmp_path)
    listed = run(["list"], tmp_path)
    assert "2027-03-14T09:00:00Z" in listed
    assert "reminder" in listed
    assert retry[0] == "retry"
    assert {path.name for path in tmp_path.iterdir()} - {"postdate.db-passes"} == {"postdate.db"}
