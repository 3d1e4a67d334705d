"""Does the provider of docs/write-a-provider.md fail and pass as the page says?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.surfaces.docs.pages import ROOT, blocks

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "write-a-provider.md"
PYTHON = [block.text for block in blocks(PAGE) if block.language == "python"]
(TOLD,) = (block.text.splitlines() for block in blocks(PAGE) if block.language == "text")
UNTIL_THE_TRIAL = 2
"""How many of the page's blocks come before the list of what fails."""


def tried(folder: Path, code: list[str]) -> tuple[list[str], str]:
    """Return the names of the cases that failed, and the last line that pytest prints."""
    (folder / "test_chirp.py").write_text("\n".join(code))
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "--rootdir", str(folder), "."]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("POSTDATE_", "PYTEST_"))}
    ran = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=100, check=False)
    failed = re.findall(r"^FAILED test_chirp\.py::\w+::(test_\w+\[.*?\]|test_\w+)", ran.stdout, re.MULTILINE)
    return failed, ran.stdout.splitlines()[-1]


def test_the_first_try_fails_in_the_cases_that_the_page_lists(tmp_path: Path) -> None:
    failed, _ = tried(tmp_path, PYTHON[:UNTIL_THE_TRIAL])
    assert failed == TOLD


def test_the_provider_passes_in_the_end(tmp_path: Path) -> None:
    failed, said = tried(tmp_path, PYTHON)
    assert failed == []
    assert re.match(r"2\d passed, 1 skipped in", said), "only the case for idempotent action types is left out"
