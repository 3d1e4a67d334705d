"""Can all that the verbs take be said on the command line?"""

from __future__ import annotations

import inspect

import pytest
import typer

from postdate import SyncVerbs
from postdate.cli import cli

VERBS = {name: verb for name, verb in vars(SyncVerbs).items() if not name.startswith("_")}

COMMANDS = {
    "schedule_many": "schedule",
    "post_now": "post-now",
    "get": "show",
    "history": "show",
    "paused": "pauses",
    "ended_pauses": "pauses",
    "set_quiet_hours": "quiet-hours set",
    "clear_quiet_hours": "quiet-hours clear",
    "quiet_hours": "quiet-hours list",
    "held": "release",
    "disabled_endpoints": "endpoints list",
    "enable_endpoint": "endpoints enable",
    "check_zones": "zones check",
    "follow_zone": "zones follow",
    "pin_zone": "zones pin",
    "create_rule": "rules create",
    "update_rule": "rules update",
    "pause_rule": "rules pause",
    "resume_rule": "rules resume",
    "end_rule": "rules end",
    "skip_occurrence": "rules skip",
    "move_occurrence": "rules move",
    "override_occurrence": "rules override",
    "run_now": "rules run-now",
    "preview_rule": "rules preview",
    "get_rule": "rules show",
    "list_rules": "rules list",
    "rule_history": "rules show",
    "missed": "rules missed",
    "set_holidays": "holidays set",
    "holidays": "holidays show",
}
"""Where a command has another name than its verb."""

PARAMETERS = {
    "schedule_many": {"actions": "csv"},
    "cancel": {"action": "actions"},
    "retry": {"action": "actions"},
    "skip_occurrence": {"occurrence": "when"},
    "move_occurrence": {"occurrence": "when"},
    "override_occurrence": {"occurrence": "when"},
    "preview_rule": {"n": "number"},
}
"""Where it calls a parameter otherwise."""


def options_of(name: str) -> set[str | None]:
    """Return what a command takes, by its name, as in `rules create`."""
    command = typer.main.get_command(cli)
    for word in name.split():
        command = command.commands[word]  # type: ignore[attr-defined]
    return {parameter.name for parameter in command.params}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_a_command_that_takes_all_its_arguments(verb: str) -> None:
    _, *taken = inspect.signature(VERBS[verb]).parameters
    called = [PARAMETERS.get(verb, {}).get(name, name) for name in taken if name != "connection"]
    assert {*called} <= options_of(COMMANDS.get(verb, verb))
