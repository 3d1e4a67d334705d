"""Which recurring rules are there, and which of them are to be looked at?"""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import bindparam, insert, literal_column, select, update

from postdate.domain.expand import Noted
from postdate.domain.rule import RecurringRule, RuleStatus
from postdate.store.owners import hold_existing_owners
from postdate.store.sets import one_of, one_of_named, rowset_named, rowset_texts, set_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Select, Update

    from postdate.store.transaction import Transaction

_SAME = tuple(each.name for each in fields(RecurringRule) if each.name not in {"grace", "status"})


def insert_rule(tx: Transaction, rule: RecurringRule) -> None:
    """Insert a rule. Its owners must be held (`hold_owners`)."""
    tx.execute(insert(tx.tables.recurring_schedules).values(_row(rule)))


def save_rule(tx: Transaction, rule: RecurringRule) -> None:
    """Write a rule back that this transaction holds (`hold_rule`)."""
    r = tx.tables.recurring_schedules
    tx.execute(update(r).where(r.c.id == rule.id).values({**_row(rule), "id": rule.id}))


def find_rule(tx: Transaction, rule_id: UUID) -> RecurringRule | None:
    """Return the rule, or None."""
    r = tx.tables.recurring_schedules
    return next(iter(_rules(tx, select(r).where(r.c.id == rule_id))), None)


def find_rules(tx: Transaction, rule_ids: Collection[UUID]) -> dict[UUID, RecurringRule]:
    """Return those of the rules that exist."""
    r = tx.tables.recurring_schedules
    return {rule.id: rule for rule in _rules(tx, select(r).where(one_of(tx, r.c.id, rule_ids)))}


def hold_rule(tx: Transaction, rule_id: UUID) -> RecurringRule | None:
    """Return the rule, kept from being changed by others until the transaction ends; None where there is none."""
    r = tx.tables.recurring_schedules
    return next(iter(_rules(tx, select(r).where(r.c.id == rule_id).with_for_update())), None)


def hold_rule_behind_owners(tx: Transaction, rule_id: UUID) -> RecurringRule | None:
    """Return the rule, held as `hold_rule` does, and its owners before it; None where the rule or an owner is gone."""
    seen = find_rule(tx, rule_id)
    if seen is None:
        return None
    missing = hold_existing_owners(tx, workspaces=[seen.workspace_id], users=[seen.user_id])
    return None if missing else hold_rule(tx, rule_id)


def page_of_rules(
    tx: Transaction,
    *,
    workspace_id: UUID | None,
    user_id: UUID | None,
    status: RuleStatus | None,
    limit: int,
    after: UUID | None,
) -> list[RecurringRule]:
    """Return up to `limit` rules in the order of their ids, which is that of their making, behind `after`."""
    r = tx.tables.recurring_schedules
    wanted = {r.c.workspace_id: workspace_id, r.c.user_id: user_id, r.c.status: status}
    query = select(r).where(*(column == value for column, value in wanted.items() if value is not None))
    if after is not None:
        query = query.where(r.c.id > after)
    return _rules(tx, query.order_by(r.c.id).limit(limit))


class DueRule(NamedTuple):
    """A rule whose look has come, and its owners."""

    id: UUID
    workspace_id: UUID | None
    user_id: UUID


def rules_to_look_at(tx: Transaction, *, now: datetime, limit: int) -> list[DueRule]:
    """Return active rules whose look has come, the longest due first."""
    found = tx.execute(tx.prepared(_due_looks), {"now": now, "at_most": limit})
    return [DueRule(row.id, row.workspace_id, row.user_id) for row in found]


def _due_looks(tx: Transaction) -> Select[Any]:
    r = tx.tables.recurring_schedules
    return (
        select(r.c.id, r.c.workspace_id, r.c.user_id)
        .where(r.c.status == _active(tx), r.c.look_at <= bindparam("now", type_=r.c.look_at.type))
        .order_by(r.c.look_at, r.c.id)
        .limit(bindparam("at_most"))
    )


def hold_rules_to_look_at(tx: Transaction, rule_ids: Collection[UUID], *, now: datetime) -> list[RecurringRule]:
    """Return those of the rules that are still to be looked at and that nobody else has in hand, and hold them."""
    asked = {"ids": set_text(tx.tables, tx.tables.recurring_schedules.c.id.type, rule_ids), "now": now}
    return _rules(tx, tx.prepared(_due_looks_held), asked)


def _due_looks_held(tx: Transaction) -> Select[Any]:
    r = tx.tables.recurring_schedules
    return (
        select(r)
        .where(
            one_of_named(tx, r.c.id, "ids"),
            r.c.status == _active(tx),
            r.c.look_at <= bindparam("now", type_=r.c.look_at.type),
        )
        .order_by(r.c.id)
        .with_for_update(skip_locked=True)
    )


def note_looks(tx: Transaction, looks: Sequence[Noted]) -> None:
    """Write what looks at held rules came to."""
    if looks:
        columns = dict(zip(Noted._fields, zip(*looks, strict=True), strict=True))
        ids = set_text(tx.tables, tx.tables.recurring_schedules.c.id.type, columns["id"])
        tx.execute(
            tx.prepared(_update_of_looks), {**rowset_texts(tx.tables, "noted", _noted_types(tx), columns), "ids": ids}
        )


def _update_of_looks(tx: Transaction) -> Update:
    r = tx.tables.recurring_schedules
    source = rowset_named(tx, "noted", _noted_types(tx))
    return (
        update(r)
        # both conditions: the join brings the values, the set of ids keeps the plan on the primary key
        .where(r.c.id == source.c.id, one_of_named(tx, r.c.id, "ids"))
        .values({name: source.c[name] for name in Noted._fields[1:]})
    )


def _noted_types(tx: Transaction) -> dict[str, Any]:
    return {name: tx.tables.recurring_schedules.c[name].type for name in Noted._fields}


def next_look(tx: Transaction) -> datetime | None:
    """Return when the expander has something to look at; None where no rule is active."""
    r = tx.tables.recurring_schedules
    first = select(r.c.look_at).where(r.c.status == _active(tx)).order_by(r.c.look_at).limit(1)
    return tx.execute(first).scalar()


def decide_anew(tx: Transaction, calendar: str, *, now: datetime) -> None:
    """Let the active rules that keep a calendar be looked at now, and what is still to come of them decided anew."""
    r = tx.tables.recurring_schedules
    keeping = update(r).where(r.c.holidays == calendar, r.c.status == _active(tx))
    tx.execute(keeping.values(look_at=now, reroll_from=now))


def _active(tx: Transaction) -> Any:
    # written out, so that every plan sees that the partial index of what is to be looked at will do
    return literal_column(f"'{RuleStatus.ACTIVE}'", tx.tables.recurring_schedules.c.status.type)


def _row(rule: RecurringRule) -> dict[str, Any]:
    row = {name: getattr(rule, name) for name in _SAME}
    row |= {"exdates": list(rule.exdates), "rdates": list(rule.rdates), "overrides": dict(rule.overrides)}
    return row | {"grace_seconds": rule.grace // timedelta(seconds=1), "status": str(rule.status)}


def _rules(tx: Transaction, query: Select[Any], asked: Mapping[str, Any] | None = None) -> list[RecurringRule]:
    """Return the rules that a query of all their columns finds."""
    names = tx.tables.recurring_schedules.c.keys()
    return [_rule(dict(zip(names, row, strict=True))) for row in tx.execute(query, asked)]


def _rule(stored: dict[str, Any]) -> RecurringRule:
    stored["exdates"], stored["rdates"] = tuple(stored["exdates"]), tuple(stored["rdates"])
    stored["grace"] = timedelta(seconds=stored.pop("grace_seconds"))
    stored["status"] = RuleStatus(stored["status"])
    return RecurringRule.read(stored)
