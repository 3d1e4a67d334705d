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
WITH_COMMANDS = ("README.md", "docs/embedding.md", "docs/operations.md")
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


def run(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTDATE_")}
    command = [sys.executable, "-W", "error", "-m", "postdate", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


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
    assert (serve, retry[0]) == (("serve",), "retry")
    for arguments in (upgrade, schedule, unconfirmed):
        ran = run(arguments, tmp_path)
        assert ran.returncode == 0, ran.stderr
    listed = run(["list"], tmp_path).stdout
    assert "reminder" in listed
    assert "2027-03-14" in listed
    assert [path.name for path in tmp_path.iterdir()] == ["postdate.db"]
