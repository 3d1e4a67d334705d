"""Recurring rules, the ledger of their occurrences, holidays, and when each periodic pass last ended."""

from __future__ import annotations

from postdate.store.migrations.script import run_script

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    run_script("0004", postgresql={}, sqlite={})
