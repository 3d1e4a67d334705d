"""What need Python's garbage collector not look through again and again?"""

from __future__ import annotations

import gc


def spare_what_stays() -> None:
    """Let the collector leave alone what is in memory now: code and settings, for as long as the process lives.

    For processes that do nothing but fire: each collection looked through all of it, a sixth of a drain's time.
    """
    gc.collect()
    gc.freeze()
