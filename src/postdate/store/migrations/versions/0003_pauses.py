"""Pauses, quiet hours, and the heartbeat by which a restored database is known."""

from __future__ import annotations

from postdate.store.migrations.script import run_script

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and let the queue say what is on hold."""
    run_script("0003", postgresql={}, sqlite={})
