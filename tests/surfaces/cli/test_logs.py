"""Is a log on a terminal safe to look at?"""

from __future__ import annotations

import logging
import sys
from io import StringIO
from typing import TYPE_CHECKING

import structlog

from postdate.cli.logs import LogLevel, configure_logs

if TYPE_CHECKING:
    import pytest


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def failing() -> None:
    secret = "s3cret"
    raise ValueError(f"it answered \x1b]0;owned\x07 and {len(secret)} more")


def test_a_traceback_tells_what_was_raised_without_what_a_terminal_would_obey(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    configure_logs(LogLevel.INFO)
    try:
        failing()
    except ValueError:
        structlog.get_logger("postdate").error("went wrong\x1b[2J", exc_info=True)
        logging.getLogger("library").exception("so it did\nfor sure")
    shown = terminal.getvalue()
    assert shown.count("ValueError: it answered \N{REPLACEMENT CHARACTER}]0;owned") == 2
    assert "so it did for sure" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown
    assert "s3cret" not in shown, "local variables are nobody's business"
