"""Does docs/cli.md tell what the command line does, all of it and nothing else?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from postdate.cli import ExitCode, cli
from postdate.cli.rows import PAYLOAD, RESERVED
from tests.surfaces.cli.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")


def section(title: str) -> str:
    """Return the text below a heading, up to the next of its level."""
    level, _, _ = title.partition(" ")
    return re.split(rf"^{level} ", PAGE.partition(f"{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def blocks(language: str, text: str) -> list[str]:
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [block for named, block in fences if named == language]


def options() -> Iterator[tuple[str, str]]:
    """Yield each command with each of its long options."""
    root = typer.main.get_command(cli)
    commands = dict(root.commands)  # type: ignore[attr-defined]
    for group in [name for name, command in commands.items() if hasattr(command, "commands")]:
        commands |= {f"{group} {name}": command for name, command in commands.pop(group).commands.items()}
    for name, command in commands.items():
        for parameter in command.params:
            yield from ((name, option) for option in parameter.opts if option.startswith("--"))


def test_the_first_run_works_in_an_empty_folder(elsewhere: Path) -> None:
    shell, told = Shell(None), section("## A first run")
    (elsewhere / "people.csv").write_text(*blocks("csv", told))
    answers = [shell.done(*shlex.split(line)[1:]) for block in blocks("", told) for line in block.splitlines()]
    assert answers[3].json["thing_id"] == "call-ana"
    assert answers[4].out == "2 scheduled, 0 refused\n"


def test_every_option_is_told_and_no_other() -> None:
    known = {option for _, option in options()} | {"--version", "--help"}
    assert set(re.findall(r"--[a-z][a-z-]*", PAGE)) == known


def test_every_command_is_told() -> None:
    told = section("## Commands")
    for name in {name for name, _ in options()}:
        assert re.search(rf"`{name}[ `]", told), name


def test_the_exit_codes_are_the_documented_ones() -> None:
    told = re.findall(r"^\| (\d+) \|", section("## Exit codes"), flags=re.MULTILINE)
    assert [int(code) for code in told] == [int(code) for code in ExitCode]


def test_the_columns_are_the_documented_ones() -> None:
    rows = re.findall(r"^\| `.*?\| (.*?) \|", section("### schedule"), flags=re.MULTILINE)
    told = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert told == RESERVED | {PAYLOAD}


def test_the_fields_of_the_json_are_the_documented_ones(on_sqlite: Shell) -> None:
    on_sqlite.reminder()
    rows = re.findall(r"^\| (`.*?) \|", section("## JSON"), flags=re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(on_sqlite.done("list", "--json").json)
