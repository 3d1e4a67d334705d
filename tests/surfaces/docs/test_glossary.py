"""Is there one word for each concept, and does the code keep to it?"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.surfaces.docs.pages import PAGES, ROOT, SOURCES, table_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = ROOT / "docs" / "glossary.md"
SECTIONS = ("What there is", "When", "What is done", "How it stands", "What it stands on")
WORDS = [row for section in SECTIONS for row in table_rows(PAGE, section)]
FORBIDDEN = ("manager", "helper", "utils", "base")
OURS = [*SOURCES.rglob("*"), *(ROOT / "demo").rglob("*"), *(ROOT / "tests").rglob("*")]
MODULES = [path for path in OURS if path.suffix == ".py"]


def defined(file: Path) -> Iterator[str]:
    """Yield the names that a module makes: its own, and those of what it defines."""
    yield file.stem
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name
            case _:
                pass


@cache
def names() -> frozenset[str]:
    """Return every name in the package: in its modules, its folders and its SQL."""
    made = {name for file in SOURCES.rglob("*.py") for name in defined(file)}
    folders = {path.name for path in SOURCES.rglob("*") if path.is_dir()}
    sql = {word for file in SOURCES.rglob("*.sql") for word in re.findall(r"\{(?:ns|p)\}(\w+)", file.read_text())}
    return frozenset(made | folders | sql)


@pytest.mark.parametrize(("word", "code"), [(word, code) for word, _, code in WORDS])
def test_what_the_glossary_names_is_in_the_code(word: str, code: str) -> None:
    named = re.findall(r"`(\w+)`", code)
    assert named, f"nothing is named for {word!r}"
    assert set(named) <= names()


@pytest.mark.parametrize("word", [word for word, _, _ in WORDS])
def test_every_word_is_used_on_another_page(word: str) -> None:
    spelled = re.compile(rf"\b{word.replace(' ', '[ _-]')}", re.IGNORECASE)
    assert any(spelled.search(page.read_text("utf-8")) for page in PAGES if page != PAGE)


def test_no_word_is_explained_twice() -> None:
    words = [word for word, _, _ in WORDS]
    assert len(words) == len(set(words))


def test_no_module_class_or_folder_is_called_by_a_name_that_says_nothing() -> None:
    called = [path.stem for path in OURS if path.is_dir() or path.suffix == ".py"]
    for file in MODULES:
        tree = ast.parse(file.read_text("utf-8"))
        called += [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    words = {name: re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name) for name in called}
    assert not [name for name, parts in words.items() if {part.lower() for part in parts} & set(FORBIDDEN)]
