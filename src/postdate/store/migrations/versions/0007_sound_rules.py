"""Rows of rules that nobody could read are refused, and single occurrences keep the wall time that they mean."""

from __future__ import annotations

from postdate.store.migrations.script import run_script

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Mend what cannot be read, add checks, two columns and an index."""
    run_script("0007", postgresql={}, sqlite={})
