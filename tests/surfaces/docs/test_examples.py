"""Do the pages' examples run as they stand, for somebody who has just begun?"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.surfaces.docs.pages import PAGES, ROOT, blocks, name_of

if TYPE_CHECKING:
    from pathlib import Path

README = ROOT / "README.md"
WITH_PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


def newcomer() -> dict[str, str]:
    """Return the environment without any setting of postdate's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("POSTDATE_")}


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python code in a folder, warnings being errors."""
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, cwd=folder, env=newcomer(), capture_output=True, text=True, timeout=60, check=False)


def test_the_readme_and_a_guide_have_examples() -> None:
    assert {"README.md", "docs/embedding.md"} <= {name_of(page) for page in WITH_PYTHON}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs_in_an_empty_folder_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    found = blocks(page)
    ran = run("\n".join(block.text for block in found if block.language == "python"), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "".join(block.text for block in found if block.language == "output")


def test_the_example_of_the_readme_can_be_served_once_it_has_run(tmp_path: Path) -> None:
    (example,) = (block.text for block in blocks(README) if block.language == "python")
    (tmp_path / "shop.py").write_text(example)
    assert run(example, tmp_path).returncode == 0
    imported = run("from shop import app; print(app.sync.list()[0].status)", tmp_path)
    assert (imported.stdout, imported.stderr) == ("published\n", "")


def test_the_example_of_the_readme_is_refused_the_second_time_as_it_says(tmp_path: Path) -> None:
    (example,) = (block.text for block in blocks(README) if block.language == "python")
    assert run(example, tmp_path).returncode == 0
    again = run(example, tmp_path)
    assert again.returncode == 1
    assert "\npostdate.errors.AlreadyPublished: " in again.stderr
