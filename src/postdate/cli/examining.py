"""How does a shell show whether an installation is fit?"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from postdate.cli.command import command
from postdate.cli.failure import ExitCode, plain
from postdate.cli.installation import Installation
from postdate.cli.options import JsonFlag
from postdate.cli.printing import Stdout
from postdate.cli.records import print_record
from postdate.cli.served import named_types
from postdate.doctor import Finding, Health, examine

_COLOURS = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "red"}
_HEALTH = max(map(len, Health))
_CHECK = 12


@command
def doctor(
    installation: Installation,
    *,
    types: Annotated[
        str | None, typer.Option(metavar="A,B", help="For an engine that serves these action types only.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Look whether this installation can fire what it holds: exit code 7 where something has to be mended.

    Nothing is changed and nothing is sent. Give --app, so that its action types are looked at.
    """
    counts = dict.fromkeys(Health, 0)
    with installation.opened(may_be_missing=True) as app:
        chosen = list(app.kernel.registry) if types is None else named_types(app, types)
        for finding in examine(app, chosen):
            counts[finding.health] += 1
            if as_json:
                print_record(finding)
            else:
                _print(finding)
    if not as_json:
        Stdout().print(f"{counts[Health.FAIL]} to mend, {counts[Health.WARN]} to look at, {counts[Health.OK]} well")
    if counts[Health.FAIL]:
        raise typer.Exit(ExitCode.UNFIT)


def _print(finding: Finding) -> None:
    line = Text(f"{finding.health:{_HEALTH}}", style=_COLOURS[finding.health])
    line.append(f" {finding.check:{_CHECK}} {plain(finding.found)}", style="none")
    if finding.advice is not None:
        read_on = "" if finding.page is None else f" (postdate docs {finding.page})"
        line.append(f"\n{'':{_HEALTH}} {'':{_CHECK}} {plain(finding.advice)}{read_on}", style="dim")
    Stdout().print(line)
