"""What do the tests of a project that uses postdate need?

`postdate.testing.postgres` starts a real, throw-away PostgreSQL server.
"""

from __future__ import annotations
