"""How does a set of values travel into one statement, on either database?

PostgreSQL takes arrays; SQLite has none and takes one JSON text. Both keep the statement the same for every size, and
both travel as text, which is written here: drivers write arrays value by value, and take four times as long.
"""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json
from sqlalchemy import Integer, Text, bindparam, cast, column, func, literal_column, select, type_coerce
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import ARRAY

from postdate.store.types import Identifier, Instant, Json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sqlalchemy import BindParameter, Select, Table
    from sqlalchemy.sql.expression import ColumnElement, FromClause
    from sqlalchemy.types import TypeEngine

    from postdate.store.schema import Tables
    from postdate.store.transaction import Transaction


def one_of(tx: Transaction, col: ColumnElement[Any], values: Collection[Any]) -> ColumnElement[bool]:
    """Return `col in values`, as a condition that stays on the index of `col` whatever the statistics say."""
    return _among(tx, col, bindparam(None, set_text(tx.tables, col.type, values), type_=Text, unique=True))


def one_of_named(tx: Transaction, col: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Return the same condition for a prepared statement: its parameter `name` takes what `set_text` makes."""
    return _among(tx, col, bindparam(name, type_=Text))


def set_text(tables: Tables, type_: TypeEngine[Any], values: Collection[Any]) -> str:
    """Return the values as the text in which they travel to the database of these tables."""
    return _json_text([values], [type_]) if tables.is_sqlite else _array_text(type_, values)


def _among(tx: Transaction, col: ColumnElement[Any], values: BindParameter[str]) -> ColumnElement[bool]:
    if tx.is_sqlite:
        each = func.json_each(values).table_valued("value")
        return col.in_(select(func.json_extract(each.c.value, "$[0]")))
    # out of a sub-query, so that the planner takes it for a few: told that there are many, it may read the whole table
    return selected_by(tx, col, select(func.unnest(cast(values, ARRAY(col.type)))))


def selected_by(tx: Transaction, col: ColumnElement[Any], query: Select[Any]) -> ColumnElement[bool]:
    """Return `col in (query)`; on PostgreSQL through an array, since a join on the sub-query may lose the index."""
    if tx.is_sqlite:
        return col.in_(query)
    return col == func.any(func.array(query.scalar_subquery()))


def unlocked(tx: Transaction, key: ColumnElement[Any], wanted: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return `wanted`, but for rows that another transaction has locked: nobody is waited for.

    The rows are locked in the order of their key. SQLite has one writer, and so no such rows.
    """
    if tx.is_sqlite:
        return wanted
    return selected_by(tx, key, select(key).where(wanted).order_by(key).with_for_update(skip_locked=True))


def row_address(tx: Transaction, table: Table) -> ColumnElement[Any]:
    """Return where a row of the table lies: the cheapest way to find it again within one statement."""
    return literal_column(f"{table.fullname}.{'rowid' if tx.is_sqlite else 'ctid'}")


def rowset(
    tx: Transaction, name: str, types: Mapping[str, TypeEngine[Any]], columns: Mapping[str, Sequence[Any]]
) -> FromClause:
    """Return rows, given by their columns, as something to select from, in the given order."""
    texts = rowset_texts(tx.tables, name, types, columns)
    return _rowset(
        tx, name, types, {key: bindparam(None, text, type_=Text, unique=True) for key, text in texts.items()}
    )


def rowset_named(tx: Transaction, name: str, types: Mapping[str, TypeEngine[Any]]) -> FromClause:
    """Return the same for a prepared statement: its parameters are what `rowset_texts` makes of the columns."""
    keys = [name] if tx.is_sqlite else [f"{name}_{key}" for key in types]
    return _rowset(tx, name, types, {key: bindparam(key, type_=Text) for key in keys})


def rowset_texts(
    tables: Tables, name: str, types: Mapping[str, TypeEngine[Any]], columns: Mapping[str, Sequence[Any]]
) -> dict[str, str]:
    """Return rows as the texts in which they travel, by parameter: a text for each column, or one for all."""
    if tables.is_sqlite:
        return {name: _json_text([columns[key] for key in types], list(types.values()))}
    return {f"{name}_{key}": _array_text(type_, columns[key]) for key, type_ in types.items()}


def _rowset(
    tx: Transaction, name: str, types: Mapping[str, TypeEngine[Any]], texts: Mapping[str, BindParameter[str]]
) -> FromClause:
    if tx.is_sqlite:
        each = func.json_each(texts[name]).table_valued("key", "value")
        extracted = [
            type_coerce(func.json_extract(each.c.value, f"$[{place}]"), type_).label(key)
            for place, (key, type_) in enumerate(types.items())
        ]
        return select(*extracted).order_by(each.c.key).subquery(name)
    arrays = [cast(texts[f"{name}_{key}"], ARRAY(type_)) for key, type_ in types.items()]
    typed = [column(key, type_) for key, type_ in types.items()]
    return func.unnest(*arrays).table_valued(*typed, name=name).render_derived()


def _array_text(type_: TypeEngine[Any], values: Collection[Any]) -> str:
    """Return the values as PostgreSQL writes an array."""
    write = next((writer for kind, writer in _ELEMENTS.items() if isinstance(type_, kind)), _quoted)
    different, times = _different(type_, values)
    elements = ["NULL" if value is None else write(value) for value in different] * times
    return f"{{{','.join(elements)}}}"


def _json_text(columns: Iterable[Collection[Any]], types: Sequence[TypeEngine[Any]]) -> str:
    """Return rows as one JSON text, each value as its type writes it to SQLite."""
    written: list[Collection[Any]] = []
    for values, type_ in zip(columns, types, strict=True):
        if isinstance(type_, _PLAIN):
            written.append(values)
        else:
            write = type_.dialect_impl(_SQLITE).bind_processor(_SQLITE) or _plain_text
            different, times = _different(type_, values)
            written.append([write(value) for value in different] * times)
    return to_json(list(zip(*written, strict=True))).decode()


def _different(type_: TypeEngine[Any], values: Collection[Any]) -> tuple[Collection[Any], int]:
    """Return the values to write, and how often: one where all are alike, as in most columns of a set."""
    if isinstance(values, list | tuple) and values and not isinstance(type_, Json):  # 1 == True, and not in JSON
        first = values[0]
        if values[-1] == first and values.count(first) == len(values):
            return values[:1], len(values)
    return values, 1


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


_ELEMENTS: dict[type[TypeEngine[Any]], Callable[[Any], str]] = {
    Identifier: attrgetter("hex"),
    Instant: datetime.isoformat,
    Json: lambda value: _quoted(to_json(value).decode()),
    Integer: str,
}
"""How PostgreSQL reads the elements of an array; texts, and whatever else there is, in quotes."""

_SQLITE = sqlite.dialect()
"""What SQLAlchemy asks how a type is written, whichever connection it is for."""

_PLAIN = (Identifier, Integer)
"""What JSON writes as these do."""


def _plain_text(value: str | None) -> str | None:
    return None if value is None else str(value)  # of an enumeration JSON asks its value, which takes long
