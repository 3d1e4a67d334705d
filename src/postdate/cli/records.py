"""How does a record look to programs?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from postdate.domain.instant import rfc3339
from postdate.domain.zones import zone

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def instant_text(instant: datetime, tz: str | None = None) -> str:
    """Return an instant in ISO 8601: in UTC with a Z, or in a zone with its offset. Raises `InvalidZone`."""
    if tz is not None:
        try:
            return instant.astimezone(zone(tz)).isoformat()
        except OverflowError:  # the last hours of the year 9999 have no local form
            pass
    return rfc3339(instant)


def record_json(record: DataclassInstance, *, without: Sequence[str] = (), first: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields of a record as JSON has them, some of them first; instants are in UTC, spans in seconds."""
    names = [each.name for each in fields(record) if each.name not in {*without, *first}]
    return {name: _plain(getattr(record, name)) for name in (*first, *names)}


def print_record(record: DataclassInstance, *, without: Sequence[str] = ()) -> None:
    """Print a record as one JSON object on one line."""
    print_json(record_json(record, without=without))


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object on one line."""
    ascii_only = (sys.stdout.encoding or "").lower() != "utf-8"
    sys.stdout.write(json.dumps(value, ensure_ascii=ascii_only) + "\n")


def _plain(value: object) -> Any:
    match value:
        case datetime():
            return instant_text(value)
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case Enum():
            return value.value
        case Mapping():
            return dict(value)
        case tuple():
            return list(value)
        case _:
            return value
