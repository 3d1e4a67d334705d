"""What does postdate look like at work? `python3 run.py demo` shows it; each file here answers one part of that."""

from __future__ import annotations
