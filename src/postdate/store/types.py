"""How are instants, uuids and JSON carried on both databases?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic_core import from_json
from sqlalchemy import BigInteger, Text, TypeDecorator, Uuid
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ColumnElement
from sqlalchemy.sql.visitors import InternalTraversal

from postdate.ids import read_uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Dialect
    from sqlalchemy.sql.compiler import SQLCompiler
    from sqlalchemy.types import TypeEngine

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


@lru_cache(maxsize=4096)
def _from_microseconds(value: int | None) -> datetime | None:
    """Read an instant: what was scheduled in a set, or goes out at nine, has many of them in common."""
    return None if value is None else _EPOCH + value * _MICROSECOND


@lru_cache(maxsize=4096)
def _in_utc(value: datetime | None) -> datetime | None:
    """Read an instant, as above."""
    return None if value is None else value.replace(tzinfo=UTC)


_uuid = lru_cache(maxsize=4096)(read_uuid)
"""Reads a uuid: a batch names its owners in every row."""


def _uuid_of_psycopg(value: Any) -> Any:
    return _uuid(value) if type(value) is str else value  # which a host may have registered, for the whole process


def _object(value: Any) -> Any:
    return from_json(value) if isinstance(value, str) else value  # Django's psycopg hands jsonb over as text


class _InUtc(ColumnElement[datetime]):
    """A column read as UTC whatever the session's zone: the last hours of year 9999 have no local time in Asia."""

    inherit_cache = True
    _traverse_internals = [("column", InternalTraversal.dp_clauseelement)]  # noqa: RUF012 - SQLAlchemy's way of building cache keys

    def __init__(self, column: ColumnElement[Any], type_: Instant) -> None:
        self.column = column
        self.type = type_


@compiles(_InUtc)
def _plain(element: _InUtc, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(element.column, **kw)


@compiles(_InUtc, "postgresql")
def _at_utc(element: _InUtc, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} AT TIME ZONE 'UTC'"


class Instant(TypeDecorator[datetime]):
    """An aware UTC datetime: timestamptz, or integer microseconds since 1970 on SQLite.

    asyncpg would send the first and the last microsecond of the calendar as infinities: it gets their neighbours.
    """

    impl = postgresql.TIMESTAMP(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type."""
        return BigInteger() if dialect.name == "sqlite" else self.impl_instance

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Read in UTC."""
        return _InUtc(column, self)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Write UTC."""
        if value is None:
            return None
        if dialect.driver == "asyncpg":
            return min(max(value, _FIRST + _MICROSECOND), _LAST - _MICROSECOND)
        return (value - _EPOCH) // _MICROSECOND if dialect.name == "sqlite" else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what makes an aware datetime in UTC of an answer. It is called for every row, so it is one step."""
        return _from_microseconds if dialect.name == "sqlite" else _in_utc


class Identifier(TypeDecorator[UUID]):
    """A uuid: native, or dashed text on SQLite."""

    impl = Uuid
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type."""
        return Text() if dialect.name == "sqlite" else self.impl_instance

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> Any:
        """Write dashed text on SQLite."""
        return str(value) if value is not None and dialect.name == "sqlite" else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], UUID | None] | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what makes a UUID of an answer; None where it surely is one already."""
        if dialect.name == "sqlite":
            return _uuid
        return None if dialect.driver == "asyncpg" else _uuid_of_psycopg


class Json(TypeDecorator[Any]):
    """A JSON value: jsonb, or text on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type."""
        return Text() if dialect.name == "sqlite" else postgresql.JSONB()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Write the text that `postdate.domain.payload` measured; JSONB writes its own."""
        return json.dumps(value, ensure_ascii=False) if dialect.name == "sqlite" else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what makes a value of an answer: an object, never a JSON string."""
        return _object
