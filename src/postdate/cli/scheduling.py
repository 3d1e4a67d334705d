"""How are actions scheduled from a shell: one, or a file of them?"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Unpack

import typer

from postdate.cli.action_options import ActionOptions
from postdate.cli.bulk import Tally, schedule_rows
from postdate.cli.command import command
from postdate.cli.csv_rows import csv_rows
from postdate.cli.failure import ExitCode, tell
from postdate.cli.installation import Installation
from postdate.cli.jsonl_rows import jsonl_rows
from postdate.cli.lines import lines
from postdate.cli.options import ActorOption, JsonFlag, PayloadOption, SetOption, actor_or_login
from postdate.cli.payload import payload_of
from postdate.cli.printing import action_json, print_moved
from postdate.cli.progress import progress_bar
from postdate.cli.records import print_json
from postdate.cli.rows import Defaults, new_action
from postdate.errors import Invalid, PostdateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from postdate.app import Postdate
    from postdate.cli.bulk import Results
    from postdate.cli.lines import Row

FILE_PANEL = "Many at once"


@command
def schedule(
    installation: Installation,
    action_type: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="The action type, as in send_email.", show_default=False)
    ] = None,
    *,
    payload: PayloadOption = None,
    set_: SetOption = None,
    csv: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="Each row of a CSV file.", rich_help_panel=FILE_PANEL)
    ] = None,
    jsonl: Annotated[
        str | None,
        typer.Option("--jsonl", metavar="FILE", help="Each line of JSON objects.", rich_help_panel=FILE_PANEL),
    ] = None,
    actor: ActorOption = None,
    as_json: JsonFlag = False,
    **options: Unpack[ActionOptions],
) -> None:
    """Schedule one action, or with --csv or --jsonl one for each row of a file (- for stdin).

    For a file, the other options stand in for what a row leaves out. A row that is refused is reported with its line
    number and stops nothing else; the exit code is then 5.
    """
    said: dict[str, Any] = {"type": action_type, **options}
    reserved = {name: value for name, value in said.items() if value is not None}
    defaults = Defaults(reserved=reserved, payload=payload_of(payload, set_) or {})
    who = actor_or_login(actor)
    if csv is None and jsonl is None:
        with installation.opened() as app:
            _schedule_one(app, defaults, actor=who, as_json=as_json)
        return
    if "idempotency_key" in reserved:
        raise Invalid(field="idempotency_key", rule="must be a column where rows are many")
    with _rows(csv=csv, jsonl=jsonl) as (file, rows), installation.opened() as app:
        tally = _schedule_all(app, file, rows, defaults, actor=who, as_json=as_json)
    print(tally, file=sys.stderr if as_json else sys.stdout)
    if tally.refused:
        raise typer.Exit(ExitCode.PARTLY_DONE)


def _schedule_one(app: Postdate, defaults: Defaults, *, actor: str, as_json: bool) -> None:
    (result,) = app.sync.schedule_many([new_action({}, defaults)], actor=actor)
    if isinstance(result, PostdateError):
        raise result
    print_moved(result, as_json=as_json)


def _schedule_all(
    app: Postdate, file: BinaryIO, rows: Iterator[Row], defaults: Defaults, *, actor: str, as_json: bool
) -> Tally:
    tally = Tally()
    try:
        with progress_bar(file, wanted=not as_json) as moved:
            for results in schedule_rows(app, rows, defaults, actor=actor):
                tally.count(results)
                _report(results, as_json=as_json)
                moved(tally)
    except BaseException:
        if tally.line:
            tell(f"stopped after the row of line {tally.line}: {tally}")
        raise
    return tally


def _report(results: Results, *, as_json: bool) -> None:
    for line, result in results:
        if isinstance(result, PostdateError):
            tell(f"line {line}: {result}")
        elif as_json:
            print_json({"line": line} | action_json(result))
    sys.stdout.flush()  # whoever reads may act on what is committed


@contextmanager
def _rows(*, csv: str | None, jsonl: str | None) -> Iterator[tuple[BinaryIO, Iterator[Row]]]:
    if csv is not None and jsonl is not None:
        raise Invalid(field="jsonl", rule="must not be given beside --csv")
    if csv is not None:
        with _opened(csv, option="csv") as file:
            yield file, csv_rows(lines(file))
    else:
        with _opened(str(jsonl), option="jsonl") as file:
            yield file, jsonl_rows(lines(file))


@contextmanager
def _opened(name: str, *, option: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below; errors of the block are not errors of opening
    except OSError as error:
        raise Invalid(field=option, rule=f"cannot be read: {error.strerror}", value=name) from None
    with file:
        yield file
