"""What does `python -m postdate` do? The same as `postdate`."""

from __future__ import annotations

from postdate.cli import main

main()
