"""How does one read the documentation where postdate is installed?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import postdate
from postdate.cli.command import command
from postdate.cli.installation import Installation
from postdate.errors import Invalid, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADING = re.compile(r"(#{1,6}) (.+)")
_FENCE = "```"


@command
def docs(
    _installation: Installation,
    page: Annotated[
        str | None,
        typer.Argument(metavar="PAGE", help="A page, or a section: operations#sqlite.", show_default=False),
    ] = None,
) -> None:
    """Print a page of the documentation, or one of its sections; without PAGE, list the pages."""
    folder = _folder()
    if page is None:
        for file in sorted(folder.rglob("*.md")):
            title = file.read_text("utf-8").partition("\n")[0].removeprefix("# ")
            print(f"{_name(file, folder)}: {title}")  # noqa: T201 - the answer
        return
    name, _, anchor = page.partition("#")
    found = {_name(file, folder): file for file in folder.rglob("*.md")}.get(name.removesuffix(".md"))
    if found is None:
        raise Invalid(field="page", rule="must be one that `postdate docs` lists", value=page)
    text = found.read_text("utf-8")
    if anchor:
        text = "".join(_section(text, anchor))
        if not text:
            raise Invalid(field="page", rule=f"has no such section: postdate docs {name}", value=page)
    print(text, end="")  # noqa: T201 - the answer


def _folder() -> Path:
    """Return where the pages are: within the package, or beside it in a checkout."""
    package = Path(postdate.__file__).parent
    for folder in (package / "docs", package.parents[1] / "docs"):
        if folder.is_dir():
            return folder
    raise Misconfigured("this installation has no documentation beside it")


def _name(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder).with_suffix(""))


def _section(text: str, anchor: str) -> Iterator[str]:
    """Yield the lines of the section whose heading has this anchor, as GitHub makes them, and of those below it."""
    within, fenced = 0, False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith(_FENCE)
        heading = None if fenced else _HEADING.match(line)
        if heading is not None:
            level, title = len(heading[1]), heading[2]
            if level <= within:
                return
            if not within and re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") == anchor:
                within = level
        if within:
            yield line
