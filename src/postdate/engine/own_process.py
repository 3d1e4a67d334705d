"""How is a process set up that does nothing but fire?"""

from __future__ import annotations

import gc
import sys

_A_TURN = 0.0001
"""For how many seconds a thread computes while another wants to."""


def set_up_process() -> None:
    """Let the garbage collector leave alone what is in memory now, and threads take shorter turns.

    Each collection looked through all code and settings, a sixth of a drain's time. And a thread that comes back from
    SQLite, or the event loop beside a handler that computes in a thread, waited for up to 5 ms, Python's default.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_A_TURN)
