"""Is anything waiting that nobody will run, or that somebody should have run?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from postdate.doctor.finding import fail, ok, warn
from postdate.domain.pause import stopped_types
from postdate.store.diagnosis import count_unconfirmed, waiting_by_type
from postdate.store.pauses import pauses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from postdate.app import Postdate
    from postdate.doctor.finding import Finding
    from postdate.store.diagnosis import Waiting

LATE = timedelta(minutes=2)
"""What has been due, or without a lease, for longer than that: an engine looks once a minute."""

_PAGE = "operations#processes"


def waiting_findings(app: Postdate) -> Iterator[Finding]:
    """Yield what there is to say of the queue, and of what waits for a person."""
    with app.kernel.transaction(None, read_only=True) as tx:
        before = app.kernel.now(tx) - LATE
        waiting = waiting_by_type(tx, due_before=before, leased_before=before)
        unconfirmed = count_unconfirmed(tx)
        stopped = stopped_types(pauses(tx))
    queued, submitted = sum(each.queued for each in waiting), sum(each.submitted for each in waiting)
    yield ok("queue", f"{queued} queued, {submitted} submitted")
    yield _unhandled(app, waiting)
    yield _overdue({each.action_type: each.overdue for each in waiting if each.action_type not in stopped})
    yield _lost({each.action_type: each.lost for each in waiting})
    if unconfirmed:
        advice = "look at the provider, then confirm, retry or dismiss: postdate list --reason unconfirmed"
        page = "operations#what-to-do-with-unconfirmed"
        yield warn("unconfirmed", f"{unconfirmed} wait for a person", advice=advice, page=page)
    else:
        yield ok("unconfirmed", "none")


def _unhandled(app: Postdate, waiting: Sequence[Waiting]) -> Finding:
    unknown = {
        each.action_type: each.queued + each.submitted
        for each in waiting
        if app.kernel.registry.get(each.action_type) is None
    }
    if not unknown:
        return ok("handlers", "there is one for every action that waits")
    advice = "this app runs none of them: is another app to serve them (--app), or was a type renamed?"
    return warn("handlers", f"missing for {_counted(unknown)}", advice=advice, page=_PAGE)


def _overdue(counts: Mapping[str, int]) -> Finding:
    if not any(counts.values()):
        return ok("overdue", "nothing")
    advice = "no engine that has these types keeps up, or none runs: postdate serve"
    return fail("overdue", f"by more than two minutes: {_counted(counts)}", advice=advice, page=_PAGE)


def _lost(counts: Mapping[str, int]) -> Finding:
    if not any(counts.values()):
        return ok("leases", "none has run out")
    advice = "a worker is gone and no engine settles what it had claimed: postdate serve"
    return fail("leases", f"run out: {_counted(counts)}", advice=advice, page=_PAGE)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {name}" for name, count in sorted(counts.items()) if count)
