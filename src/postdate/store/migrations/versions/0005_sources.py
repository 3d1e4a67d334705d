"""Which source wants an action, what it said, and a way to find what ended by its key."""

from __future__ import annotations

from postdate.store.migrations.script import run_script

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and two indexes."""
    run_script("0005", postgresql={}, sqlite={})
