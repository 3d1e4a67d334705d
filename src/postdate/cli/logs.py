"""How does the program log: to people or to machines?"""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from io import StringIO
from typing import TYPE_CHECKING, TextIO

import structlog
from structlog.stdlib import ProcessorFormatter

from postdate.cli.failure import plain
from postdate.domain.text import printable

if TYPE_CHECKING:
    from structlog.typing import EventDict, ExcInfo, Processor

_TALKATIVE = ("alembic", "httpcore2", "httpx2")
"""They tell every request, with its address, at level info."""


class LogLevel(StrEnum):
    """From which level on lines are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logs(level: LogLevel) -> None:
    """Log to stderr: coloured lines on a terminal, JSON lines elsewhere; what uses `logging` comes out the same way."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[ProcessorFormatter.remove_processors_meta, *_rendering(people=sys.stderr.isatty())],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(number)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    structlog.configure(
        processors=[*shared, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


def _rendering(*, people: bool) -> list[Processor]:
    """Tracebacks are plain text: the richer kinds show local variables, and with them secrets."""
    if people:
        return [_harmless, structlog.dev.ConsoleRenderer(exception_formatter=_traceback)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


def _harmless(_logger: object, _method: str, line: EventDict) -> EventDict:
    """Take away what a terminal would obey, or show as a line of its own: payloads and answers come from anybody."""
    harmless = {name: plain(value) if isinstance(value, str) else value for name, value in line.items()}
    if isinstance(told := line.get("traceback"), str):
        harmless["traceback"] = f"\n{printable(told)}"
    return harmless


def _traceback(out: TextIO, error: ExcInfo) -> None:
    told = StringIO()
    structlog.dev.plain_traceback(told, error)
    out.write(printable(told.getvalue()))
