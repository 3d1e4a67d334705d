"""Does docs/states.md say what the table of moves says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postdate.domain.states import MOVES, Reason, Status
from tests.surfaces.docs.pages import SOURCES
from tests.surfaces.docs.states_page import MEANS, PAGE, SAID_BY, written

if TYPE_CHECKING:
    from collections.abc import Iterator

AGAIN = "run: .venv/bin/python tests/surfaces/docs/states_page.py"


def code_that_moves() -> Iterator[str]:
    """Yield the package's code but for the table itself, and for what tests are made of."""
    for file in SOURCES.rglob("*.py"):
        if file.name != "states.py" and SOURCES / "testing" not in file.parents:
            yield file.read_text("utf-8")


def test_the_page_is_what_the_table_of_moves_makes_of_it() -> None:
    assert PAGE.read_text("utf-8") == written(), AGAIN


def test_every_status_and_every_move_is_explained() -> None:
    assert set(MEANS) == set(Status)
    assert set(SAID_BY) == {(move.source, move.cause) for move in MOVES}


def test_every_reason_is_given_by_some_code() -> None:
    source = "".join(code_that_moves())
    assert not {reason for reason in Reason if f"Reason.{reason.name}" not in source}
    assert "started_at=begins" in (SOURCES / "store" / "queue.py").read_text("utf-8")
