#!/usr/bin/env python3
"""How do I see it work, and how do I test it?

    python3 run.py demo [ARGS]    run the demo
    python3 run.py test           run every check, then the tests
    python3 run.py test ARGS      run pytest alone, with these arguments
    python3 run.py coverage       run the tests, and say which branches of what decides and writes none of them takes

Needs nothing but Python 3.11 or newer. Installs the project into .venv, again when its dependencies change.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = str(VENV / "bin" / "python")
# Command: the extras and the dependency groups of pyproject.toml that it needs.
COMMANDS = {
    "demo": (["postgres"], ["demo"]),
    "test": (["postgres", "asyncpg", "celery", "otel"], ["test", "lint"]),
    "coverage": (["postgres", "asyncpg", "celery", "otel"], ["test", "lint"]),
}
CHECKS = {
    "ruff check": [PYTHON, "-m", "ruff", "check"],
    "ruff format": [PYTHON, "-m", "ruff", "format", "--check"],
    "mypy": [PYTHON, "-m", "mypy"],
    "lint-imports": [str(VENV / "bin" / "lint-imports"), "--no-logo"],
}
# Each worker starts servers of its own, so more of them do not help for long.
PARALLEL = ["-n", "logical", "--maxprocesses", "4", "--dist", "worksteal"]
COVERED = ("domain", "store", "engine")
ENOUGH = 95.0
"""Percent of the branches of each of these packages that the tests take."""


def install(command: str) -> None:
    """Install the project with what `command` needs, unless that has been done."""
    sources = (ROOT / "pyproject.toml").read_bytes(), (ROOT / "constraints.txt").read_bytes()
    wanted = hashlib.sha256(b"\0".join([*sources, str(ROOT).encode(), sys.version.encode()])).hexdigest()
    stamp = VENV / f"installed-for-{command}"
    if Path(PYTHON).exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    extras, groups = COMMANDS[command]
    declared = tomllib.loads(sources[0].decode())["dependency-groups"]
    packages = [requirement for group in groups for requirement in declared[group]]
    packages += ["--constraint", "constraints.txt", "--editable", f".[{','.join(extras)}]"]
    print("Installing into .venv; the first time takes about half a minute ...", flush=True)
    if uv := shutil.which("uv"):
        subprocess.run([uv, "venv", "--allow-existing", "--python", sys.executable, VENV], check=True)
        subprocess.run([uv, "pip", "install", "--python", PYTHON, *packages], check=True)
    else:
        complete_venv_module()
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *packages], check=True)
    stamp.write_text(wanted)


def complete_venv_module() -> None:
    """Install the part of `venv` that Debian keeps in a package of its own, or name the command that does."""
    if importlib.util.find_spec("ensurepip"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit("Python's venv module is incomplete here. Run this once: sudo apt-get install python3-venv")
    command = "apt-get update -qq && apt-get install -qq --no-install-recommends python3-venv"
    subprocess.run(["/bin/sh", "-c", command], check=True)


def passes(title: str, command: list[str]) -> bool:
    """Run one check under its own heading."""
    print(f"\n=== {title} ===", flush=True)
    return subprocess.run(command, check=False).returncode == 0


def covers_enough() -> bool:
    """Print what no test reached, and which part of the branches of each package the tests have taken."""
    packages = {package: f"src/postdate/{package}/" for package in COVERED}
    included = f"--include={','.join(f'{folder}*' for folder in packages.values())}"
    passes("what no test reaches", [PYTHON, "-m", "coverage", "report", included])
    told = subprocess.run([PYTHON, "-m", "coverage", "json", "-o", "-", included], check=True, stdout=subprocess.PIPE)
    files = json.loads(told.stdout)["files"]
    print(f"\n=== branches taken, of which {ENOUGH:g} % are asked for ===")
    enough = [_covers_enough(name, folder, files) for name, folder in packages.items()]
    return all(enough)


def _covers_enough(package: str, folder: str, files: dict[str, dict[str, dict[str, int]]]) -> bool:
    found = [told["summary"] for path, told in files.items() if path.startswith(folder)]
    taken, branches = (sum(each[name] for each in found) for name in ("covered_branches", "num_branches"))
    print(f"{package:8} {100 * taken / branches:6.2f} %  ({taken} of {branches})")
    return 100 * taken / branches >= ENOUGH


def main() -> None:
    """Read the command, install, run it."""
    command, *arguments = sys.argv[1:] or ["help"]
    if command not in COMMANDS:
        sys.exit(__doc__)
    os.chdir(ROOT)
    install(command)
    if command == "demo":
        os.execv(PYTHON, [PYTHON, "-m", "demo", *arguments])  # noqa: S606  # signals reach the demo itself
    if command == "coverage":
        tested = passes("pytest", [PYTHON, "-m", "pytest", "--cov", "--cov-report=", *(arguments or PARALLEL)])
        sys.exit(0 if covers_enough() and tested else 1)
    failed = [] if arguments else [title for title, check in CHECKS.items() if not passes(title, check)]
    if failed:
        print(f"\n=== failed so far: {', '.join(failed)} ===")
    tested = passes("pytest", [PYTHON, "-m", "pytest", *(arguments or PARALLEL)])
    sys.exit(0 if tested and not failed else 1)


if __name__ == "__main__":
    main()
