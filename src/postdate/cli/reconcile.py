"""How does a shell make the queue hold what the application's sources want, or see what that would change?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from postdate.cli.command import command
from postdate.cli.failure import ExitCode, plain, tell
from postdate.cli.installation import Installation
from postdate.cli.options import JsonFlag
from postdate.cli.printing import Stdout
from postdate.cli.records import instant_text, print_json
from postdate.domain.action import SEPARATOR
from postdate.domain.reconcile import Insert, Keep, Replace
from postdate.errors import Misconfigured
from postdate.verbs import reconcile as reconcile_verb

if TYPE_CHECKING:
    from postdate.app import Postdate
    from postdate.engine.fulfil import Planned
    from postdate.engine.tally import Reconciled, ReconcileReport
    from postdate.engine.wanted import Scope


@command
def reconcile(
    installation: Installation,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Ask every source of the application what it wants, and make the queue hold that; serve does so once a minute.

    Each change has a line, each source and workspace a summary. What stays as it is is counted by its reason.
    """
    with installation.opened() as app:
        if not len(app.kernel.sources):
            raise Misconfigured("the application has no sources: register them with app.source(...), and give --app")
        report = asyncio.run(_reconcile(app, dry_run=dry_run, as_json=as_json))
    for part in report.parts:
        _print_part(part, as_json=as_json)
    if report.failed or any(part.refused for part in report.parts):
        raise typer.Exit(ExitCode.PARTLY_DONE)


async def _reconcile(app: Postdate, *, dry_run: bool, as_json: bool) -> ReconcileReport:
    def told(scope: Scope, planned: Planned) -> None:
        if not isinstance(planned.step, Keep):
            _print_step(scope, planned, as_json=as_json)

    try:
        return await reconcile_verb(app.kernel, dry_run=dry_run, told=told)
    finally:
        await app.close()


def _print_step(scope: Scope, planned: Planned, *, as_json: bool) -> None:
    said = _step_json(scope, planned)
    if as_json:
        print_json(said)
        return
    what = [said["action_type"], said["thing_id"], said["target_key"], said["occurrence"]]
    line = Text(f"{said['step']:8} {plain(' / '.join(filter(None, what)))}")
    for name, value in (("due", said["publish_at"]), ("replaces", said["replaces_id"]), ("action", said["action_id"])):
        if value is not None:
            line.append(f", {name} {value}", style="dim")
    if planned.clashed:
        line.append(": somebody else was faster")
    if planned.refused is not None:
        line.append(f": refused: {plain(planned.refused)}", style="red")
    Stdout().print(line)


def _step_json(scope: Scope, planned: Planned) -> dict[str, Any]:
    step = planned.step
    action_type, thing, target, occurrence = step.key.split(SEPARATOR)
    other = None if isinstance(step, Insert) else str(step.action_id)
    return {
        "step": type(step).__name__.lower(),
        "source": scope.source,
        "workspace_id": None if scope.workspace_id is None else str(scope.workspace_id),
        "action_type": action_type,
        "thing_id": thing,
        "target_key": target or None,
        "occurrence": occurrence,
        "publish_at": None if planned.publish_at is None else instant_text(planned.publish_at),
        "replaces_id": other if isinstance(step, Replace) else None,
        "action_id": None if isinstance(step, Replace) else other,
        "refused": planned.refused,
        "clashed": planned.clashed,
    }


def _print_part(part: Reconciled, *, as_json: bool) -> None:
    counts = {name: getattr(part, name) for name in ("inserted", "replaced", "withdrawn", "clashed", "refused")}
    kept = {str(reason): count for reason, count in sorted(part.kept.items())}
    workspace = None if part.workspace_id is None else str(part.workspace_id)
    if as_json:
        print_json({"source": part.source, "workspace_id": workspace, **counts, "kept": kept, "failed": part.failed})
        return
    said = [f"{count} {name}" for name, count in counts.items() if count]
    said += [f"{count} kept ({reason.replace('_', ' ')})" for reason, count in kept.items()]
    where = "" if workspace is None else f" in workspace {workspace}"
    Stdout().print(Text(f"{plain(part.source)}{where}: {', '.join(said) or 'nothing'}", style="bold"))
    if part.failed is not None:
        tell(f"{part.source}{where} was not reconciled to the end: {part.failed}")
