"""Which pages are there, and which code, links and headings do they hold?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src" / "postdate"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]

_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of code: where it begins, what it says it is, and its text."""

    line: int
    language: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link: the code that it shows, and where it leads."""

    code: tuple[str, ...]
    target: str


def name_of(page: Path) -> str:
    """Return how a test calls the page."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """Return the page's fenced blocks."""
    return [
        Block(line=token.map[0] + 1, language=token.info.strip(), text=token.content)
        for token in _tokens(page)
        if token.type == "fence" and token.map
    ]


def spans(page: Path) -> list[str]:
    """Return the page's code within the lines."""
    children = (child for token in _tokens(page) for child in token.children or [])
    return [child.content for child in children if child.type == "code_inline"]


def links(page: Path) -> Iterator[Link]:
    """Yield the page's links, not those inside code."""
    for token in _tokens(page):
        children = token.children or []
        for place, child in enumerate(children):
            if child.type == "link_open":
                inside = takewhile(lambda inner: inner.type != "link_close", children[place:])
                code = tuple(inner.content for inner in inside if inner.type == "code_inline")
                yield Link(code=code, target=str(child.attrGet("href")))


def anchors(page: Path) -> set[str]:
    """Return the anchors of the page's headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", inline.content.lower()).replace(" ", "-")
        for heading, inline in pairwise(_tokens(page))
        if heading.type == "heading_open"
    }


def table_rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, its head left out."""
    tokens = _tokens(page)
    below = next(place for place, token in enumerate(tokens) if token.type == "inline" and token.content == heading)
    rows: list[list[str]] = []
    for token, inline in pairwise(tokens[below:]):
        if token.type == "tbody_close":
            return rows
        if token.type == "tr_open":
            rows.append([])
        if token.type == "td_open":
            rows[-1].append(inline.content)
        if token.type == "thead_close":
            rows.clear()
    raise AssertionError(f"{name_of(page)} has no table below {heading!r}")


@cache
def _tokens(page: Path) -> list[Token]:
    return _MARKDOWN.parse(page.read_text("utf-8"))
