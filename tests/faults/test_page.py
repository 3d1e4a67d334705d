"""Does every test that docs/faults.md names exist, and is every scenario there?"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.surfaces.docs.pages import ROOT, table_rows

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "faults.md"
SCENARIOS = table_rows(PAGE, "Scenarios")
OTHERS = [*table_rows(PAGE, "Around the engine"), *table_rows(PAGE, "All at once")]
PROMISED = [
    *(1, 3, 4, 6, 9, 10, 12, 13, 16, 18, 19, 24, 26, 27, 29, 30, 32, 33, 34, 38),
    *(41, 42, 48, 50, 53, 57, 58, 59, 60, 62),
]
"""The scenarios of what there is so far: drips and callbacks will bring their own."""


@cache
def cases_in(file: Path) -> dict[str, str]:
    """Return the tests of a file, each with what it says about itself."""
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {each.name: ast.get_docstring(each) or "" for each in functions if each.name.startswith("test_")}


@pytest.mark.parametrize("row", [*SCENARIOS, *OTHERS], ids=lambda row: row[0][:40])
def test_the_tests_that_a_row_names_exist(row: list[str]) -> None:
    named = re.findall(r"`([^`]+)::(\w+)`", row[-1])
    assert named
    for path, name in named:
        assert name in cases_in(ROOT / path), f"{path} has no {name}"


def test_every_scenario_is_there_once_and_in_order() -> None:
    assert [row[0] for row in SCENARIOS] == [f"SC{number:02d}" for number in PROMISED]


@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row[0])
def test_a_test_that_carries_the_number_of_a_scenario_is_named_in_its_row(row: list[str]) -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    carrying = {name for file in files for name, said in cases_in(file).items() if re.search(rf"\b{row[0]}\b", said)}
    named = set(re.findall(r"::(\w+)`", row[3]))
    assert not carrying - named
