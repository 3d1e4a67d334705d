"""Which lines does a file hold, and on which line does each row begin?"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from postdate.errors import Invalid

MAX_LINE = 1024 * 1024
"""The longest line, and the longest row over several lines, in bytes: four times the largest payload."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a file, counted from 1. `data` is None where it was too long to be kept."""

    number: int
    data: bytes | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one row gives: its values by column, or what is wrong with it."""

    line: int
    """Where it begins."""
    size: int
    """How many bytes it took."""
    given: Mapping[str, object] | Invalid


def lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines of a file without ever holding more than `MAX_LINE` bytes; a byte order mark is left out."""
    number = 0
    while data := file.readline(MAX_LINE):
        number += 1
        if len(data) == MAX_LINE and not data.endswith(b"\n"):
            _skip_line(file)
            yield Line(number=number, data=None)
        else:
            yield Line(number=number, data=data.removeprefix(codecs.BOM_UTF8) if number == 1 else data)


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
        pass
