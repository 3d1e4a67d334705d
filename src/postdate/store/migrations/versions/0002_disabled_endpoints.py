"""Endpoints that have said that they are gone."""

from __future__ import annotations

from postdate.store.migrations.script import run_script

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    run_script("0002", postgresql={}, sqlite={})
