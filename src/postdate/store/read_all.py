"""How do many rows come back in one step, on either database?

From SQLite row by row, and for each the interpreter is given away and waited for, which takes longer than the row where
another thread computes. So there they are one JSON document, which is one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json
from sqlalchemy import func, select

from postdate.store.types import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Select

    from postdate.store.transaction import Transaction


@dataclass(frozen=True)
class Rows:
    """Rows as the database gave them. To read their values takes as long again, for which others need not wait."""

    given: Sequence[Sequence[Any]]
    readers: Mapping[int, Callable[[Any], Any]]
    """What makes a value of what was given, by the place of the column."""

    def read(self, row: Sequence[Any]) -> Sequence[Any]:
        """Return the values of a row."""
        if not self.readers:
            return row
        values = list(row)
        for place, read in self.readers.items():
            values[place] = read(values[place])
        return values


def read_all(tx: Transaction, build: Callable[[Transaction], Select[Any]], parameters: Mapping[str, Any]) -> Rows:
    """Return the rows of the prepared statement that `build` makes, in its order."""
    if not tx.is_sqlite:
        return Rows(tx.execute(tx.prepared(build), parameters).all(), {})
    rows: list[list[Any]] = from_json(tx.execute(tx.prepared(_document, build), parameters).scalar_one())
    return Rows(rows, tx.prepared(_readers, build))


def _document(tx: Transaction, build: Callable[[Transaction], Select[Any]]) -> Select[Any]:
    rows = build(tx).subquery()
    values = [func.json(column) if isinstance(column.type, Json) else column for column in rows.columns]
    return select(func.json_group_array(func.json_array(*values)))  # in the order of `rows`, which SQLite keeps


def _readers(tx: Transaction, build: Callable[[Transaction], Select[Any]]) -> Mapping[int, Callable[[Any], Any]]:
    """Return what makes a value of what SQLite gives, by the place of the column; JSON has been read."""
    dialect = tx.connection.dialect
    types = [column.type for column in build(tx).selected_columns]
    readers = [None if isinstance(each, Json) else each.result_processor(dialect, None) for each in types]
    return {place: read for place, read in enumerate(readers) if read is not None}
