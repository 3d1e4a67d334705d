"""Do the links between the pages, and into the code, lead where they say?"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.surfaces.docs.pages import PAGES, ROOT, anchors, links, name_of

if TYPE_CHECKING:
    from pathlib import Path

OUTSIDE = re.compile(r"[a-z]+://|mailto:")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    for link in links(page):
        if OUTSIDE.match(link.target):
            continue
        path, _, anchor = link.target.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link.target
        assert target.is_relative_to(ROOT), link.target
        assert not anchor or anchor in anchors(target), link.target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_link_that_shows_code_leads_to_the_file_that_defines_it(page: Path) -> None:
    for link in links(page):
        target = page.parent / link.target
        if target.suffix == ".py":
            tree = ast.parse(target.read_text("utf-8"))
            made = {getattr(node, "name", None) for node in ast.walk(tree)}
            made |= {
                node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            named = {name.rpartition(".")[2] for name in link.code}
            assert named <= made, f"{link.target} does not define {sorted(named - made)}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[str](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.suffix != ".md" or name_of(page) in reached:
            continue
        reached.add(name_of(page))
        found = (link.target.partition("#")[0] for link in links(page) if not OUTSIDE.match(link.target))
        waiting += [(page.parent / target).resolve() for target in found if target]
    assert reached == {name_of(page) for page in PAGES}
