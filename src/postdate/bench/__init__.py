"""How fast is postdate here, beside a hand-written loop over the same tables?"""

from __future__ import annotations

from postdate.bench.figure import Bound, Figure
from postdate.bench.measuring import What, measure
from postdate.bench.place import Kind

__all__ = ["Bound", "Figure", "Kind", "What", "measure"]
