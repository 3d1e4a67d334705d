"""Which rows does a CSV file hold? One that is broken costs itself alone."""

from __future__ import annotations

import csv
import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postdate.cli.lines import MAX_LINE, Line, Row
from postdate.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_UNDECODED = re.compile(r"[\udc80-\udcff]")


@dataclass(frozen=True, kw_only=True)
class _Record:
    line: int
    size: int
    cells: list[str] | Invalid


def csv_rows(source: Iterable[Line]) -> Iterator[Row]:
    """Yield the rows below the header (RFC 4180, UTF-8); an empty cell gives nothing.

    Raises `Invalid` where the header cannot be used.
    """
    csv.field_size_limit(MAX_LINE)
    records = _records(iter(source))
    columns = _columns(next(records, None))
    for record in records:
        yield Row(line=record.line, size=record.size, given=_given(columns, record.cells))


def _records(source: Iterator[Line]) -> Iterator[_Record]:
    """Yield the records that are not empty.

    A quote that nothing closes would swallow what follows: after a broken record, reading goes on with its second
    line.
    """
    waiting: deque[Line] = deque()
    while True:
        taken: list[Line] = []
        cells: list[str] | Invalid
        try:
            cells = next(csv.reader(_feed(waiting, source, taken), strict=True))
        except StopIteration:
            return
        except csv.Error as error:
            cells = _broken(taken, error)
            waiting.extendleft(reversed(taken[1:]))
            del taken[1:]
        if cells:
            yield _Record(line=taken[0].number, size=sum(len(line.data or b"") for line in taken), cells=cells)


def _feed(waiting: deque[Line], source: Iterator[Line], taken: list[Line]) -> Iterator[str]:
    size = 0
    while (line := waiting.popleft() if waiting else next(source, None)) is not None:
        taken.append(line)
        size += MAX_LINE if line.data is None else len(line.data)
        if line.data is None or size > MAX_LINE:
            raise csv.Error("a quote is not closed")
        yield line.data.decode("utf-8", "surrogateescape")  # so that the cell at fault can be named


def _broken(taken: list[Line], error: csv.Error) -> Invalid:
    if taken[0].data is None:
        return too_long()
    rule = "a quote is not closed" if len(taken) > 1 or "end of data" in str(error) else str(error)
    return Invalid(field="row", rule=f"is not CSV: {rule}")


def too_long() -> Invalid:
    """Return what is wrong with a line that was not kept."""
    return Invalid(field="row", rule=f"must be at most {MAX_LINE} bytes long")


def _columns(header: _Record | None) -> list[str]:
    if header is None:
        raise Invalid(field="header", rule="is missing: the first line must name the columns")
    if isinstance(header.cells, Invalid):
        raise Invalid(field="header", rule=str(header.cells))
    columns = [cell.strip() for cell in header.cells]
    for place, column in enumerate(columns, start=1):
        if _UNDECODED.search(column):
            raise Invalid(field="header", rule=f"must be UTF-8: column {place} is not")
        if not column:
            raise Invalid(field="header", rule=f"must name every column: column {place} has no name")
        if column in columns[: place - 1]:
            raise Invalid(field="header", rule="must name every column once", value=column)
    return columns


def _given(columns: list[str], cells: list[str] | Invalid) -> dict[str, object] | Invalid:
    if isinstance(cells, Invalid):
        return cells
    if len(cells) != len(columns):
        return Invalid(field="row", rule=f"must have {len(columns)} cells, as the header has", value=len(cells))
    given: dict[str, object] = {}
    for column, cell in zip(columns, cells, strict=True):
        if _UNDECODED.search(cell):
            return Invalid(field=column, rule="must be UTF-8")
        if cell:
            given[column] = cell
    return given
