"""How is the demo started, and how does it end?"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from demo.options import Options, read
from demo.program import CommandFailed
from demo.screen import Screen
from demo.show import show

if TYPE_CHECKING:
    from demo.verdict import Verdict

STOPPED = 128 + signal.SIGINT
"""The exit code that shells give to what Ctrl-C has ended."""


async def _show(options: Options, screen: Screen) -> int:
    """Run the demo; Ctrl-C and its kin cancel it, so that it takes everything away before it ends."""
    showing = asyncio.create_task(show(options, screen))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _cancel_once, showing)
    return 0 if (await showing).passed else 1


def _cancel_once(task: asyncio.Task[Verdict]) -> None:
    if not task.cancelling():  # a second Ctrl-C must not cut the clean-up short
        task.cancel()


def main() -> int:
    """Run the demo and return its exit code: 0 where each action arrived once and in time."""
    options, screen = read(), Screen()
    for name in [name for name in os.environ if name.startswith("POSTDATE_")]:
        del os.environ[name]  # the reader's own settings are for the reader's own database
    try:
        return asyncio.run(_show(options, screen))
    except asyncio.CancelledError:
        screen.say("Stopped.")
        return STOPPED
    except CommandFailed as failure:
        screen.say(str(failure), style="red")
        return 1


if __name__ == "__main__":
    sys.exit(main())
