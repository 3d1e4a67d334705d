"""Run as a program, upgrades each database whose URL it reads, one a line, and answers `ok` or the error."""

from __future__ import annotations

import sys

from postdate.store.migrate import upgrade


def main() -> None:
    """Answer each line."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        try:
            upgrade(line.strip())
        except Exception as error:  # noqa: BLE001 - the parent judges it
            answer = f"{type(error).__name__}: {error}".replace("\n", " ")
        else:
            answer = "ok"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
