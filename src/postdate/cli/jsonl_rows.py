"""Which rows does a file of JSON lines hold?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

from postdate.cli.csv_rows import too_long
from postdate.cli.lines import Line, Row
from postdate.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def jsonl_rows(source: Iterable[Line]) -> Iterator[Row]:
    """Yield a row for each line that is not blank; a value of null gives nothing."""
    for line in source:
        if line.data is None:
            yield Row(line=line.number, size=0, given=too_long())
        elif line.data.strip():
            yield Row(line=line.number, size=len(line.data), given=_given(line.data))


def json_object(text: str, *, field: str) -> dict[str, object]:
    """Return the JSON object in `text`. Raises `Invalid`."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise Invalid(field=field, rule=f"must be JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(field=field, rule=f"must be JSON: {error}") from None
    if not isinstance(value, dict):
        raise Invalid(field=field, rule="must be a JSON object", value=value)
    return value


def _given(data: bytes) -> dict[str, object] | Invalid:
    try:
        given = json_object(data.decode().strip(), field="row")
    except UnicodeDecodeError:
        return Invalid(field="row", rule="must be UTF-8")
    except Invalid as error:
        return error
    return {name: value for name, value in given.items() if value is not None}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
