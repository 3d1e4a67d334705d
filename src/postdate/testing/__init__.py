"""What do the tests of a project that uses postdate need?

`postdate.testing.pytest_plugin` brings fixtures: a fresh database, a clock that the test moves, and what falls due.
`postdate.testing.travel` lets weeks pass from due instant to due instant, and says what fired when.
`postdate.testing.chaos` hurts real workers of an app, and finds out whether the promises hold.
`postdate.testing.factories` makes owners, and actions in any state; `postdate.testing.scene` puts an app around them.
`postdate.testing.conformance` finds out whether a database keeps what the store promises.
`postdate.testing.postgres` starts a real, throw-away PostgreSQL server.
`postdate.testing.providers` finds out whether a provider says what happened, against scripted HTTP and mail servers.
`postdate.testing.runs` runs a handler once, as the engine does.
"""

from __future__ import annotations
