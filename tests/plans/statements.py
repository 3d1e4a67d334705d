"""Which calls of the store must stay on their indexes, and on which?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID, uuid4

from sqlalchemy import bindparam, text

from postdate.domain.action import Request
from postdate.domain.expand import Noted
from postdate.domain.rule import RuleStatus, SkipReason
from postdate.domain.settle import Finished, Requeued
from postdate.domain.states import Cause, Reason, Status
from postdate.store import (
    actions,
    decided,
    events,
    idempotency,
    intents,
    late,
    leases,
    occurrences,
    outcomes,
    pauses,
    queue,
    quiet,
    reading,
    reconcile,
    rule_actions,
    rules,
    terms,
    verdicts,
)
from postdate.store.schema import SYSTEM_PROFILE
from tests.plans.crowd import FEW, HELD, MANY, NOW, TYPES, WORKSPACES, action_id, key, lease_token, leased, workspace_id

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from sqlalchemy import CursorResult

    from postdate.domain.settle import Settlement
    from postdate.store.transaction import Transaction

HANDFUL = ("pauses", "heartbeat")
"""Tables that hold a few rows at most, and are read as a whole."""

BATCH = 500
"""As many as the engine claims of one type at once."""
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

Call: TypeAlias = "Callable[[Transaction], object]"


@dataclass(frozen=True)
class Statement:
    """A call of the store, and the indexes that its statements and their triggers use."""

    call: Call
    indexes: frozenset[str]
    """They use each of these,"""
    by_triggers: frozenset[str]
    """each of these, of which SQLite tells nothing,"""
    either: frozenset[str]
    """at least one of these, and no other."""

    @property
    def name(self) -> str:
        """What it does."""
        return self.call.__name__


STATEMENTS: list[Statement] = []


def uses(*indexes: str, by_triggers: Collection[str] = (), either: Collection[str] = ()) -> Callable[[Call], Call]:
    """List the decorated call among the statements."""

    def listed(call: Call) -> Call:
        STATEMENTS.append(Statement(call, frozenset(indexes), frozenset(by_triggers), frozenset(either)))
        return call

    return listed


# --- the engine ----------------------------------------------------------------------------------------


@uses("queue_due", "queue_pkey", "queue_lease_until", "actions_pkey", "outcomes_guard")
def claim(tx: Transaction) -> None:
    claimed = queue.claim_due(
        tx, action_type="type-1", now=NOW, limit=BATCH, lease_token=uuid4(), lease_until=NOW + HOUR, worker="worker"
    )
    assert len(claimed) == BATCH


@uses("queue_due", "queue_pkey")
def claim_where_nothing_is_due(tx: Transaction) -> None:
    longer_ago = NOW - 2 * HOUR
    claimed = queue.claim_due(
        tx, action_type="type-1", now=longer_ago, limit=BATCH, lease_token=uuid4(), lease_until=NOW, worker="worker"
    )
    assert not claimed


@uses("outcomes_guard")
def look_at_the_guard_once_more(tx: Transaction) -> None:
    published = [key(MANY + 10 * n + 2) for n in range(BATCH // 2)]
    unheard_of = [key(2 * MANY + n) for n in range(1, BATCH // 2 + 1)]
    assert len(actions.guarded_keys(tx, published + unheard_of)) == BATCH // 2


@uses("queue_due")
def find_the_next_due_instant(tx: Transaction) -> None:
    due = queue.next_due(tx, [f"type-{n}" for n in range(TYPES)])
    assert due is not None
    assert due < NOW


@uses()
def read_the_terms_of_a_claim(tx: Transaction) -> None:
    found = terms.claim_terms(tx)
    assert (len(found.pauses), found.any_quiet_hours, found.held) == (FEW, True, False)


@uses("queue_pkey")
def put_claimed_actions_on_hold(tx: Transaction) -> None:
    claimed = list(map(action_id, leased()))
    assert pauses.hold_claimed(tx, lease_token=lease_token(0), action_ids=claimed) == set(claimed)


@uses("queue_due", "queue_pkey")
def put_what_is_due_in_a_workspace_on_hold(tx: Transaction) -> None:
    workspaces = [workspace_id(n) for n in range(1, WORKSPACES, 8)]
    held = pauses.hold_due(tx, action_type="type-1", workspace_ids=workspaces, now=NOW, among=BATCH)
    assert 0 < held < BATCH


@uses("queue_held", "queue_pkey")
def release_what_no_pause_holds(tx: Transaction) -> None:
    assert pauses.release_held(tx) == HELD // WORKSPACES


@uses("queue_held", "queue_pkey")
def release_what_a_workspace_has_on_hold(tx: Transaction) -> None:
    assert pauses.release_held_of(tx, workspace_id(59)) == HELD // WORKSPACES


@uses("quiet_hours_workspace")
def find_quiet_hours(tx: Transaction) -> None:
    found = quiet.quiet_hours(tx, workspace_ids=[action_id(n) for n in range(BATCH)])
    assert len(found) == BATCH // 5 - 1


@uses("queue_lease_until")
def find_lost_leases(tx: Transaction) -> None:
    assert (
        len(
            queue.lost_leases(
                tx,
                ["type-3"],
                unbegun_of=["type-4"],
                now=NOW,
                limit=BATCH,
                others_than=["type-3", "type-4"],
                others_before=NOW - HOUR,
                but={(action_id(n), uuid4()) for n in leased()},
            )
        )
        == BATCH
    )


@uses("queue_lease_until")
def find_doubtful_leases(tx: Transaction) -> None:
    ours = {(action_id(n), uuid4()) for n in leased()}
    assert len(queue.doubtful_leases(tx, "type-3", now=NOW, limit=BATCH, but=ours)) == BATCH


@uses("actions_pkey", "outcomes_guard", either=["queue_pkey", "queue_lease_until"])
def take_lost_leases_over(tx: Transaction) -> None:
    lost = [action_id(7 + 200 * n) for n in range(BATCH)]
    taken = queue.take_over(tx, "type-3", lost, now=NOW, lease_token=uuid4(), lease_until=NOW + HOUR, worker="worker")
    assert len(taken) == BATCH


@uses("queue_pkey")
def renew_leases(tx: Transaction) -> None:
    held = [(action_id(n), lease_token(0)) for n in leased()]
    assert leases.renew_leases(tx, held, lease_until=NOW + HOUR).renewed == set(held)


@uses("queue_lease_until")
def find_what_was_claimed_in_a_round_that_nobody_heard_of(tx: Transaction) -> None:
    ends = [NOW - timedelta(seconds=60), NOW + timedelta(seconds=60)]
    found = leases.held_under(tx, lease_token(0), lease_ends=ends)
    assert {held.action_id for held in found} == set(map(action_id, leased()))


@uses("queue_pkey")
def lock_in_one_order(tx: Transaction) -> None:
    queue.lock_queued(tx, [action_id(13 * n) for n in range(1, BATCH + 1)])


@uses("queue_pkey")
def see_which_are_still_leased(tx: Transaction) -> None:
    held = {(action_id(n), lease_token(0)) for n in leased()}
    assert queue.still_leased(tx, held) == held


PUBLISHED = Finished(cause=Cause.PUBLISHED, status=Status.PUBLISHED, attempt_count=1, provider_id="id")
REJECTED = Finished(cause=Cause.REJECTED, status=Status.FAILED, reason=Reason.REJECTED, attempt_count=1)


def _settle(tx: Transaction, token: UUID, settlements: Mapping[UUID, Settlement]) -> frozenset[UUID]:
    settling = outcomes.Settling.of(tx.tables, token, settlements)
    return outcomes.settle_claimed(tx, settling, now=NOW, actor="engine")


@uses("queue_pkey")
def settle(tx: Transaction) -> None:
    ended = dict.fromkeys(map(action_id, leased()), PUBLISHED)
    won = _settle(tx, lease_token(0), ended)
    assert won == set(ended)


@uses("queue_pkey", "outcomes_pkey")
def settle_what_failed_in_part(tx: Transaction) -> None:
    ended = {action_id(n): PUBLISHED if n % 3 else REJECTED for n in leased()}
    won = _settle(tx, lease_token(0), ended)
    assert won == set(ended)


@uses("queue_pkey", "outcomes_pkey")
def settle_after_the_lease_was_lost(tx: Transaction) -> None:
    ended = dict.fromkeys(map(action_id, leased()), PUBLISHED)
    assert _settle(tx, uuid4(), ended) == set()


@uses("queue_pkey")
def requeue(tx: Transaction) -> None:
    back = Requeued(cause=Cause.NOT_SENT, due_at=NOW + HOUR, attempt_count=1, error="no route")
    settlements = dict.fromkeys(map(action_id, leased()), back)
    won = _settle(tx, lease_token(0), settlements)
    assert won == set(settlements)


@uses("idempotency_expires")
def purge_expired_keys(tx: Transaction) -> None:
    assert idempotency.purge_expired(tx, now=NOW + HOUR, limit=BATCH) == BATCH


# --- rules -----------------------------------------------------------------------------------------


def rule_ids() -> list[UUID]:
    return [action_id(100 * n + 1) for n in range(BATCH)]


@uses("recurring_schedules_look")
def find_rules_to_look_at(tx: Transaction) -> None:
    assert len(rules.rules_to_look_at(tx, now=NOW, limit=BATCH)) == BATCH


@uses(either=["recurring_schedules_pkey", "recurring_schedules_look"])
def hold_rules_to_look_at(tx: Transaction) -> None:
    assert len(rules.hold_rules_to_look_at(tx, rule_ids(), now=NOW)) == BATCH


@uses("recurring_schedules_look")
def find_the_next_look(tx: Transaction) -> None:
    assert rules.next_look(tx) is not None


@uses("recurring_schedules_pkey")
def note_what_looks_came_to(tx: Transaction) -> None:
    same: dict[str, Any] = {"status": RuleStatus.ACTIVE, "reroll_from": None, "last_error": None}
    same |= {"last_materialized_at": NOW, "look_at": NOW + HOUR}
    rules.note_looks(tx, [Noted(id=rule_id, **same) for rule_id in rule_ids()])


@uses()
def take_lines_of_the_ledger(tx: Transaction) -> None:
    """A conflict is no scan: the plan shows none."""
    made = [(rule_id, NOW + days * DAY, uuid4()) for rule_id in rule_ids() for days in (0, 1)]
    left_out = [(rule_id, NOW + 2 * DAY, SkipReason.MISSED) for rule_id in rule_ids()]
    assert len(occurrences.claim_lines(tx, made=made, left_out=left_out, now=NOW)) == BATCH


@uses("recurring_schedules_pkey", "rule_occurrences_pkey", "rule_occurrences_action")
def ask_what_rules_say_of_being_late(tx: Transaction) -> None:
    assert len(late.late_occurrences(tx, rule_ids(), now=NOW + HOUR)) == BATCH


@uses("rule_occurrences_action")
def note_what_was_missed(tx: Transaction) -> None:
    occurrences.skip_lines(tx, rule_ids(), reason=SkipReason.MISSED, now=NOW + HOUR)


@uses("rule_occurrences_missed")
def list_what_was_missed(tx: Transaction) -> None:
    assert len(occurrences.missed_lines(tx, rule_id=None, since=NOW - HOUR, limit=100)) == 100


@uses("queue_overlap", "recurring_schedules_pkey", "rule_occurrences_pkey", "outcomes_pkey")
def see_whose_turn_it_is(tx: Transaction) -> None:
    assert len(rule_actions.turns(tx, [action_id(10 * n + 3) for n in range(BATCH)])) == BATCH


@uses("rule_occurrences_decided")
def page_through_what_people_decided_about_occurrences(tx: Transaction) -> None:
    found = decided.decided_page(tx, since=NOW - DAY, limit=BATCH)
    following = decided.decided_page(tx, since=NOW - DAY, limit=BATCH, after=found[9])
    assert (len(found), following[: BATCH - 10]) == (BATCH, found[10:])


@uses(either=["rule_occurrences_decided", "rule_occurrences_pkey"])
def find_what_people_decided_about_the_occurrences_of_a_rule(tx: Transaction) -> None:
    assert len(decided.decided_lines(tx, action_id(4757), since=NOW - DAY)) == 1


@uses("rule_occurrences_pkey")
def see_which_rules_go_on_since_an_occurrence_was_moved(tx: Transaction) -> None:
    assert decided.last_moves(tx, rule_ids(), after=NOW) == {}


@uses("rule_occurrences_action")
def note_what_was_withdrawn(tx: Transaction) -> None:
    occurrences.withdraw_lines(tx, dict.fromkeys(rule_ids(), NOW), now=NOW)


@uses("rule_occurrences_pkey", "outcomes_pkey")
def see_when_a_rule_was_at_work(tx: Transaction) -> None:
    rule_actions.last_runs(tx, action_id(4713), since=NOW - 30 * DAY)


@uses("actions_origin_id", "queue_pkey")
def find_what_a_rule_has_queued(tx: Transaction) -> None:
    rule_actions.queued_of(tx, action_id(4711))


@uses("actions_zone")
def find_the_zones_in_use(tx: Transaction) -> None:
    assert intents.zones_in_use(tx) == sorted(f"zone-{n}" for n in range(20))


@uses("actions_zone", "queue_pkey")
def find_what_is_to_come_in_a_zone(tx: Transaction) -> None:
    found = intents.intended_in(tx, intents.Stretch(tz="zone-3"), now=NOW, limit=BATCH)
    following = intents.intended_in(tx, intents.Stretch(tz="zone-3"), now=NOW, limit=BATCH // 10, after=found[9])
    assert following == found[10 : 10 + BATCH // 10]


@uses("queue_pkey", either=["actions_owner_zone", "actions_calendar"])
def find_what_is_to_come_in_the_zone_of_an_owner(tx: Transaction) -> None:
    owner = intents.Owner(user_id=SYSTEM_PROFILE, workspace_id=workspace_id(6))
    assert len(intents.intended_in(tx, intents.Stretch(tz="zone-0", owner=owner), now=NOW, limit=BATCH)) > 100


# --- the verbs -----------------------------------------------------------------------------------------


@uses("outcomes_guard")
def insert(tx: Transaction) -> None:
    """New things, and as many that went out."""
    wanted = [*(MANY + 10 * n + 2 for n in range(BATCH // 2)), *(2 * MANY + n for n in range(1, BATCH // 2 + 1))]
    requests = [
        Request(
            id=uuid4(),
            workspace_id=workspace_id(n),
            user_id=SYSTEM_PROFILE,
            action_type=f"type-{n % TYPES}",
            target_key="instagram",
            payload={"thing_id": f"thing-{n}"},
            publish_at=NOW + HOUR,
            overlap_key=f"new-{n}",
            created_at=NOW,
        )
        for n in wanted
    ]
    assert len(actions.insert_actions(tx, requests).admitted) == BATCH // 2


@uses("queue_key")
def find_active_keys(tx: Transaction) -> None:
    assert len(actions.active_keys(tx, [key(7 * n) for n in range(1, BATCH + 1)])) == BATCH


@uses("queue_overlap")
def find_who_holds_an_overlap_key(tx: Transaction) -> None:
    assert actions.overlap_holder(tx, "type-1", "overlap-13") == action_id(13)


@uses("actions_pkey", "queue_pkey", "outcomes_pkey")
def find_an_action(tx: Transaction) -> None:
    assert reading.find_action(tx, action_id(4711)) is not None


@uses("actions_pkey", "queue_pkey", "outcomes_pkey")
def find_actions(tx: Transaction) -> None:
    assert len(reading.find_actions(tx, [action_id(31 * n) for n in range(1, BATCH + 1)])) == BATCH


@uses("queue_pkey")
def cancel(tx: Transaction) -> None:
    queued = [action_id(20 * n + 1) for n in range(BATCH)]
    cancelled = outcomes.withdraw_queued(
        tx, queued, cause=Cause.CANCEL, reason=Reason.USER, now=NOW, actor="somebody", note="not now"
    )
    assert cancelled == set(queued)


@uses("queue_pkey", "outcomes_pkey", "actions_pkey", by_triggers=["outcomes_guard"])
def retry(tx: Transaction) -> None:
    ended = {action_id(7): REJECTED}
    _settle(tx, lease_token(0), ended)
    assert verdicts.reopen_failed(tx, action_id(7), below=5, now=NOW, actor="somebody")


@uses("outcomes_pkey")
def confirm(tx: Transaction) -> None:
    assert verdicts.confirm_unconfirmed(tx, action_id(MANY + 100), provider_id=None, now=NOW, actor="somebody")


@uses("outcomes_pkey")
def dismiss(tx: Transaction) -> None:
    assert verdicts.dismiss_unconfirmed(tx, action_id(MANY + 100), now=NOW, actor="somebody")


@uses("queue_key")
def find_siblings(tx: Transaction) -> None:
    assert len(verdicts.siblings(tx, key(4711))) == 1


@uses("idempotency_pkey")
def find_idempotency_keys(tx: Transaction) -> None:
    found = idempotency.find_keys(tx, [(f"schedule:rule-{n}", f"key-{n}") for n in range(1, BATCH + 1)])
    assert len(found) == BATCH


@uses()
def take_idempotency_keys(tx: Transaction) -> None:
    """A conflict is no scan: the plan shows none."""
    entries = [
        idempotency.Entry(scope=f"schedule:rule-{n}", key=f"key-{n}", body_hash="", action_id=None, expires_at=NOW)
        for n in range(1, BATCH + 1)
    ]
    assert idempotency.take_keys(tx, entries, now=NOW - HOUR) == set()


@uses("idempotency_pkey")
def release_idempotency_keys(tx: Transaction) -> None:
    idempotency.release_keys(tx, [(f"schedule:rule-{n}", f"key-{n}") for n in range(1, BATCH + 1)])


@uses("idempotency_action")
def release_the_keys_of_an_action(tx: Transaction) -> None:
    idempotency.release_keys_of(tx, action_id(4711))


# --- readers -------------------------------------------------------------------------------------------


@uses("actions_calendar", "queue_pkey", "outcomes_pkey")
def show_a_week_of_a_workspace(tx: Transaction) -> None:
    week = reading.Filter(workspace_id=workspace_id(2), since=NOW, until=NOW + timedelta(days=7))
    assert len(reading.page_of_actions(tx, week, limit=100)) == 100


@uses("actions_calendar", "actions_pkey", "queue_pkey", "outcomes_pkey")
def show_the_next_page_of_a_workspace(tx: Transaction) -> None:
    week = reading.Filter(workspace_id=workspace_id(2), since=NOW, until=NOW + timedelta(days=7))
    first = reading.page_of_actions(tx, week, limit=10)
    assert len(reading.page_of_actions(tx, week, limit=10, after=first[-1].id)) == 10


# --- other programs ------------------------------------------------------------------------------------


def by_the_view(tx: Transaction, sql: str, **values: UUID | datetime) -> CursorResult[Any]:
    """Run SQL on the view, each value carried as its kind of column is."""
    columns = tx.tables.actions.c
    types = {UUID: columns.id.type, datetime: columns.publish_at.type}
    view = f"{tx.tables.names.qualifier(tx.connection.dialect.name)}scheduled_actions"
    bound = (bindparam(name, value, type_=types[type(value)]) for name, value in values.items())
    return tx.execute(text(sql.format(view=view)).bindparams(*bound))


@uses("actions_calendar", "queue_pkey", "outcomes_pkey")
def select_a_week_of_a_workspace(tx: Transaction) -> None:
    """P24."""
    query = "select * from {view} where workspace_id = :workspace and publish_at >= :since and publish_at < :until"
    week = by_the_view(tx, query, workspace=workspace_id(2), since=NOW, until=NOW + timedelta(days=7))
    assert len(week.all()) > 100


@uses("actions_pkey", "queue_pkey", "outcomes_pkey")
def update_to_cancelled(tx: Transaction) -> None:
    cancel = "update {view} set status = 'cancelled' where id = :id and status = 'queued'"
    by_the_view(tx, cancel, id=action_id(21))
    cancelled = reading.find_action(tx, action_id(21))
    assert cancelled is not None
    assert cancelled.status is Status.CANCELLED


@uses(by_triggers=["outcomes_guard"])
def insert_a_row(tx: Transaction) -> None:
    insert = (
        "insert into {view} (id, user_id, action_type, payload, publish_at)"
        """ values (:id, :user, 'type-1', '{{"thing_id": "new"}}', :at)"""
    )
    by_the_view(tx, insert, id=uuid4(), user=SYSTEM_PROFILE, at=NOW + HOUR)


# --- history -------------------------------------------------------------------------------------------


@uses("action_events_action")
def tell_the_history(tx: Transaction) -> None:
    assert len(events.events_of(tx, action_id(4711))) == 1


# --- the reconciler ------------------------------------------------------------------------------------


@uses("queue_key", "actions_pkey")
def find_what_stands_under_keys(tx: Transaction) -> None:
    keys = [*(key(7 * n) for n in range(1, BATCH // 2 + 1)), *(key(2 * MANY + n) for n in range(BATCH // 2))]
    assert len(reconcile.standing_under(tx, keys)) == BATCH // 2


@uses("outcomes_guard", "outcomes_ended")
def find_what_has_ended_under_keys(tx: Transaction) -> None:
    keys = [key(MANY + n) for n in range(1, BATCH + 1)]
    assert len(reconcile.terminal_keys(tx, keys)) == BATCH


@uses("queue_source")
def look_through_what_a_source_wants(tx: Transaction) -> None:
    ours = partial(reconcile.keys_of_source, tx, source="posts", place=workspace_id(2), limit=BATCH)
    first = ours(after="")
    second = ours(after=first[-1])
    assert (len(set(first + second)), max(first) < min(second)) == (2 * BATCH, True)


@uses("actions_thing", either=["queue_pkey", "queue_source"])
def find_what_a_source_wants_of_one_thing(tx: Transaction) -> None:
    types = [f"type-{n}" for n in range(TYPES)]
    found = reconcile.keys_of_thing(tx, source="posts", place=workspace_id(2), types=types, thing_id="thing-102")
    assert found == [key(102)]
