"""How is a noted statement sent through a bare driver, and how do sets of values travel in it?"""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from pydantic_core import from_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from uuid import UUID

    from postdate.bench.sent import Sent

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Bare(Protocol):
    """A driver's connection, and how it writes values."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begin, and commit at the end."""

    def run(self, sent: Sent, **values: object) -> Sequence[tuple[Any, ...]]:
        """Send a statement with the values that it had, but for these, and return its rows."""

    def read_all(self, sent: Sent, **values: object) -> Sequence[Sequence[Any]]:
        """Send a statement that reads many rows (`postdate.store.read_all`), and return them, their JSON read."""

    def uuid(self, value: UUID) -> Any:
        """Return a uuid as a parameter, and in a set."""

    def instant(self, value: datetime) -> Any:
        """Return an instant as a parameter, and in a set."""

    def set_of(self, values: Sequence[Any]) -> str:
        """Return a set of values as the parameter in which it travels."""

    def rows(self, name: str, columns: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        """Return rows, given by their columns, as the parameters in which they travel."""


def bare(driver: Any, dialect: str) -> Bare:
    """Return the way to work with a driver's connection."""
    return _Sqlite(driver) if dialect == "sqlite" else _Psycopg(driver)


class _Psycopg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield
        self._connection.commit()

    def run(self, sent: Sent, **values: object) -> Sequence[tuple[Any, ...]]:
        cursor = self._connection.execute(sent.text, {**sent.values, **values})
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall() if cursor.description else ()
        return rows

    def read_all(self, sent: Sent, **values: object) -> Sequence[Sequence[Any]]:
        return self.run(sent, **values)  # psycopg has read the JSON

    def uuid(self, value: UUID) -> UUID:
        return value

    def instant(self, value: datetime) -> datetime:
        return value

    def set_of(self, values: Sequence[Any]) -> str:
        return f"{{{','.join([_element(value) for value in values])}}}"

    def rows(self, name: str, columns: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        return {f"{name}_{column}": self.set_of(values) for column, values in columns.items()}


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str) and ("\\" in value or '"' in value):
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'


class _Sqlite:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        yield
        self._connection.execute("commit")

    def run(self, sent: Sent, **values: object) -> Sequence[tuple[Any, ...]]:
        merged = {**sent.values, **values}
        in_order = [merged[name] for name in sent.places]
        rows: Sequence[tuple[Any, ...]] = self._connection.execute(sent.text, in_order).fetchall()
        return rows

    def read_all(self, sent: Sent, **values: object) -> Sequence[Sequence[Any]]:
        [[document]] = self.run(sent, **values)
        rows: list[list[Any]] = from_json(document)
        return rows

    def uuid(self, value: UUID) -> str:
        return str(value)

    def instant(self, value: datetime) -> int:
        return (value - _EPOCH) // timedelta(microseconds=1)

    def set_of(self, values: Sequence[Any]) -> str:
        return json.dumps([[value] for value in values])

    def rows(self, name: str, columns: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        return {name: json.dumps(list(zip(*columns.values(), strict=True)))}
