"""Where the zone of an action came from, and what is to become of it when that zone changes."""

from __future__ import annotations

from postdate.store.migrations.script import run_script

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and two indexes."""
    run_script("0006", postgresql={}, sqlite={})
