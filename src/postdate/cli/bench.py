"""How does a shell show how fast postdate is here?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from postdate.bench import Figure, Kind, What, measure
from postdate.cli.command import command
from postdate.cli.failure import ExitCode, tell
from postdate.cli.installation import Installation
from postdate.cli.options import JsonFlag
from postdate.cli.printing import Stdout
from postdate.cli.records import print_json

_HEAD = f"{'':20} {'value':>12} {'unit':9} {'raw':>12} {'ratio':>6}  goal"


@command
def bench(
    installation: Installation,
    what: Annotated[What, typer.Argument(help="What to measure.", show_default=False)],
    *,
    rows: Annotated[int | None, typer.Option(min=1, help="How many actions, rules or seconds.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often a drain is repeated; medians are printed.")] = 5,
    processes: Annotated[int, typer.Option(min=1, help="How many engines drain together at the end.")] = 2,
    on: Annotated[Kind, typer.Option(help="What to start, without --database-url.")] = "postgresql",
    as_json: JsonFlag = False,
) -> None:
    """Measure how fast this machine fires actions: exit code 8 where a goal is missed.

    It works in a schema, or a file, of its own and removes it. Without --database-url it starts a server for itself.
    """
    tell("measuring: the first figures may take a minute or two")
    if not as_json:
        Stdout().print(Text(_HEAD, style="bold"))
    missed = False
    for figure in measure(
        what, rows=rows, rounds=rounds, processes=processes, database_url=installation.database_url, kind=on
    ):
        missed = missed or figure.ok is False
        if as_json:
            print_json(_json(figure))
        else:
            _print(figure)
    if missed:
        raise typer.Exit(ExitCode.GOAL_MISSED)


def _print(figure: Figure) -> None:
    raw = "" if figure.raw is None else f"{figure.raw:,.1f}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    line = Text(f"{figure.name:20} {figure.value:>12,.1f} {figure.unit:9} {raw:>12} {ratio:>6}  ")
    if figure.goal is not None:
        line.append(f"{figure.goal} {'ok' if figure.ok else 'MISSED'}", style="green" if figure.ok else "red")
    Stdout().print(line)


def _json(figure: Figure) -> dict[str, Any]:
    told: dict[str, Any] = {"name": figure.name, "value": round(figure.value, 3), "unit": figure.unit}
    if figure.raw is not None and figure.ratio is not None:
        told |= {"raw": round(figure.raw, 3), "ratio": round(figure.ratio, 4)}
    if figure.goal is not None:
        told |= {"goal": str(figure.goal), "ok": figure.ok}
    return told
