"""What can one try while the demo goes on?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from demo.program import POSTDATE
from postdate.clock import host_time

if TYPE_CHECKING:
    from demo.stage import Stage


def next_steps(ready: Stage) -> str:
    """Return what to type in another terminal, and first the settings that it needs."""
    settings = "\n".join(f"  export {name}={shlex.quote(value)}" for name, value in ready.program.settings.items())
    next_year = host_time().year + 1
    return f"""
It goes on: what you schedule now arrives here too. In another terminal:

{settings}
  export PATH={shlex.quote(str(Path(POSTDATE).parent))}:"$PATH"

  postdate list --json
  postdate schedule call_webhook --set url={ready.webhook_url}/hello --at "$(date -u +%FT%TZ)"
  postdate schedule send_email --set to=you@example.com --set subject=Hello --set text=Hi \\
      --at "{next_year}-01-01 09:00" --tz Europe/Lisbon
  postdate list --status queued
  postdate post-now ID
  postdate cancel ID

The log of postdate serve is {ready.log}. Ctrl-C ends the demo and removes everything.
"""
