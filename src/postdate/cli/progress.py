"""How far has a file been read?"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from io import UnsupportedOperation
from typing import TYPE_CHECKING, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(file: BinaryIO, *, wanted: bool) -> Iterator[Callable[[object], None]]:
    """Show a bar on stderr, where that is a terminal; it moves when the function given is called with a word or two."""
    size = _size(file)
    bar = Progress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # else what belongs on stdout would come out beside the bar
        disable=not wanted or not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("", total=size)

        def moved(said: object) -> None:
            bar.update(task, completed=None if size is None else file.tell(), description=str(said))

        yield moved


def _size(file: BinaryIO) -> int | None:
    """Return how many bytes there will be, or None for a pipe."""
    try:
        found = os.fstat(file.fileno())
    except UnsupportedOperation:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
