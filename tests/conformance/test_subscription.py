"""Is the suite subscribed to with the few lines that docs/testing.md shows?"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from postdate.testing.conformance.cases import guard
from tests.surfaces.docs.pages import ROOT, blocks

if TYPE_CHECKING:
    from pathlib import Path

LINES = next(block.text for block in blocks(ROOT / "docs" / "testing.md") if "SqliteConformance" in block.text)


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text('pytest_plugins = ["postdate.testing.pytest_plugin"]\n')
    (folder / "test_ours.py").write_text(LINES)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("POSTDATE_", "PYTEST_"))}
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=100, check=False)


def test_the_cases_run_in_a_project_of_somebody_else(tmp_path: Path) -> None:
    done = ran(tmp_path, "-k", "guard or published_thing or never_deleted")
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_a_case_that_fails_shows_its_values() -> None:
    """Asserts in the cases are rewritten as those in a test module are."""
    assert type(guard.__loader__).__name__ == "AssertionRewritingHook"
