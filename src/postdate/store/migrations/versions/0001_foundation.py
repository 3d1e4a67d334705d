"""What was asked, what is to do, what happened."""

from __future__ import annotations

from postdate.store.migrations.script import run_script, script_names

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_HEX = "[0-9a-f]"

_POSTGRESQL = {
    "{system}": "'00000000-0000-0000-0000-000000000000'",
    "{control}": r"'[\u0001-\u001f\u007f-\u009f]'",
}
_SQLITE = {
    "{system}": "'00000000-0000-0000-0000-000000000000'",
    "{control}": "'*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'",
    "{now}": "cast(round((julianday('now') - 2440587.5) * 86400000) as integer) * 1000",
    "{uuid_glob}": f"'{'-'.join(_HEX * n for n in (8, 4, 4, 4, 12))}'",
    # RFC 9562, version 7; `random() & mask`, because abs() overflows on the smallest integer
    "{uuid7}": (
        "printf('%08x-%04x-7%03x-%04x-%012x', "
        "cast((julianday('now') - 2440587.5) * 86400000 as integer) >> 16, "
        "cast((julianday('now') - 2440587.5) * 86400000 as integer) & 65535, "
        "random() & 4095, 32768 | (random() & 16383), random() & 281474976710655)"
    ),
}


def upgrade() -> None:
    """Create everything that the host does not bring itself."""
    names = script_names()
    own = [what for what, theirs in (("profiles", names.profiles), ("workspaces", names.workspaces)) if theirs is None]
    for script in (*(f"0001_{what}" for what in own), "0001"):
        run_script(script, postgresql=_POSTGRESQL, sqlite=_SQLITE)
