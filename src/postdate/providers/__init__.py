"""How does the outside world answer? Each provider turns an answer into an outcome."""

from __future__ import annotations
