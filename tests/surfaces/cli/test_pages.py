"""Can one read the documentation where postdate is installed, without a checkout?"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

import postdate as package
from tests.surfaces.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.cli.shell import Shell


def test_the_pages_are_listed_and_printed(on_sqlite: Shell) -> None:
    listed = on_sqlite.done("docs").lines
    assert "cli: Command line" in listed
    assert any(line.startswith("adr/0003-unconfirmed: 0003") for line in listed)
    for name in ("cli", "cli.md"):
        assert on_sqlite.done("docs", name).out == (ROOT / "docs" / "cli.md").read_text("utf-8")


def test_a_section_ends_where_the_next_of_its_level_begins(on_sqlite: Shell) -> None:
    exit_codes = on_sqlite.done("docs", "cli#exit-codes").lines
    assert exit_codes[0] == "## Exit codes"
    assert not any(line.startswith("#") for line in exit_codes[1:])
    commands = on_sqlite.done("docs", "cli#commands").lines
    assert "### bench" in commands
    assert "## Exit codes" not in commands


@pytest.mark.parametrize("page", ["nope", "cli#nope", "../README", "/etc/passwd", ""])
def test_what_there_is_not_is_wrong_usage(on_sqlite: Shell, page: str) -> None:
    answer = on_sqlite("docs", page)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("postdate: page: ")


def test_an_installed_package_brings_its_pages_along(
    on_sqlite: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"docs": "postdate/docs"}
    installed = tmp_path / "site" / "lib" / "postdate"
    (installed / "docs").mkdir(parents=True)
    (installed / "docs" / "tour.md").write_text("# A tour\n")
    monkeypatch.setattr(package, "__file__", str(installed / "__init__.py"))
    assert on_sqlite.done("docs").out == "tour: A tour\n"
    (installed / "docs" / "tour.md").unlink()
    (installed / "docs").rmdir()
    assert on_sqlite("docs").code == 4
