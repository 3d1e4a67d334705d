"""How is the command line called within the test's own process?"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from postdate.cli import cli


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """What was printed, where it is one JSON object."""
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


class Shell:
    """`shell("list", "--json")` runs a command; environment variables can be added by name."""

    def __init__(self, database_url: str | None) -> None:
        self.settings: dict[str, str | None] = {name: None for name in os.environ if name.startswith("POSTDATE_")}
        if database_url is not None:
            self.settings["POSTDATE_DATABASE_URL"] = database_url

    def __call__(self, *arguments: str, stdin: str | bytes | None = None, **settings: str) -> Answer:
        env = self.settings | {"COLUMNS": "80"} | settings
        result = CliRunner().invoke(cli, arguments, input=stdin, env=env, prog_name="postdate")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception  # no command may end so
        return Answer(code=result.exit_code, out=result.stdout, err=result.stderr)

    def done(self, *arguments: str, **settings: str) -> Answer:
        """Run a command that must succeed."""
        answer = self(*arguments, **settings)
        assert answer.code == 0, answer.err
        return answer

    def reminder(self, *arguments: str, at: str = "2099-03-14T09:00Z") -> str:
        """Schedule a reminder and return its id."""
        answer = self.done("schedule", "reminder", "--set", "text=Hi", "--at", at, *arguments, "--json")
        return str(answer.json["id"])
