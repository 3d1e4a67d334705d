"""Which errors can postdate raise, and what do they carry?

One tree. Every error carries its data as attributes; `permanent` says whether the same call can never
succeed later. HTTP statuses and exit codes are decided by the surfaces, not here.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

_SHOWN = 80


def _shown(value: object) -> str:
    """Return a bounded `repr`, so that hostile input never floods a log; times and spans as people write them."""
    try:
        if isinstance(value, date):
            text = str(value.isoformat())
        elif isinstance(value, timedelta):
            text = str(value)
        else:
            text = repr(value[: _SHOWN + 1]) if isinstance(value, str | bytes) else repr(value)
    except Exception:  # noqa: BLE001 - a hostile value's own repr must not hide what is wrong with it
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _spoken(key: str) -> str:
    """Return a key (`postdate.domain.action.SEPARATOR` joins its parts) as people read it, without empty parts."""
    return _shown(" / ".join(part for part in key.split("\x1f") if part))


class PostdateError(Exception):
    """Anything postdate refuses or cannot do."""

    permanent: ClassVar[bool] = True


class Invalid(PostdateError):
    """A value breaks a rule. `field` names the argument, `rule` what it broke."""

    def __init__(self, *, field: str, rule: str, value: object = None) -> None:
        """Keep the field, the rule and the offending value."""
        self.field = field
        self.rule = rule
        self.value = value
        super().__init__(f"{field}: {rule} (got {_shown(value)})" if value is not None else f"{field}: {rule}")


class InvalidZone(Invalid):
    """Not an IANA time zone name, or no zone where one is needed."""


class InvalidWallTime(Invalid):
    """Not a wall-clock time, or one that the chosen policy refuses."""


class InvalidInstant(Invalid):
    """Not an aware datetime within the years 1 to 9999. Naive datetimes are refused everywhere (P95, P100)."""


class InvalidPayload(Invalid):
    """Not a JSON object within bounds, or not what the action type expects."""


class InvalidText(Invalid):
    """Text that is too long, empty, or holds characters that no database here may see."""


class InvalidRule(Invalid):
    """Not a recurrence that postdate reads. `part` names what is wrong in it (`INTERVAL`, `hour`), `why` says why."""

    def __init__(self, form: str, *, part: str, why: str, value: object = None) -> None:
        """Keep the part and the reason; `field` is the form of the recurrence: rrule, cron or every."""
        self.part = part
        self.why = why
        super().__init__(field=form, rule=f"{part} {why}", value=value)


class UnknownActionType(Invalid):
    """No such action type is registered. `known` lists those that are."""

    def __init__(self, action_type: str, *, known: Sequence[str]) -> None:
        """Keep the names that would have been accepted."""
        self.known = tuple(known)
        listed = ", ".join(sorted(self.known)) or "none"
        super().__init__(field="action_type", rule=f"is not registered (known: {listed})", value=action_type)


class UnknownSource(Invalid):
    """No such source is registered. `known` lists those that are."""

    def __init__(self, source: str, *, known: Sequence[str]) -> None:
        """Keep the names that would have been accepted."""
        self.known = tuple(known)
        listed = ", ".join(sorted(self.known)) or "none"
        super().__init__(field="source", rule=f"is not registered (known: {listed})", value=source)


class NotFound(PostdateError):
    """Something named by the request does not exist."""

    def __init__(self, *, what: str, ident: object) -> None:
        """Keep what was looked for and by which identifier."""
        self.what = what
        self.ident = ident
        super().__init__(f"no {what} {_shown(str(ident))}")


class ActionNotFound(NotFound):
    """There is no such action, or retention has dropped what it asked for."""

    def __init__(self, action_id: UUID) -> None:
        """Keep the id as `ident`."""
        super().__init__(what="action", ident=action_id)


class RuleNotFound(NotFound):
    """There is no such recurring rule."""

    def __init__(self, rule_id: UUID) -> None:
        """Keep the id as `ident`."""
        super().__init__(what="rule", ident=rule_id)


class OccurrenceNotFound(NotFound):
    """The rule has no occurrence at this instant, which is what names one. `rule_id` says which rule."""

    def __init__(self, rule_id: UUID, nominal_at: datetime) -> None:
        """Keep the rule, and the instant as `ident`."""
        self.rule_id = rule_id
        super().__init__(what=f"occurrence of rule {rule_id} at", ident=nominal_at.isoformat())


class OwnerNotFound(NotFound):
    """The workspace or profile that should own the action does not exist. `what` says which."""


class EndpointNotDisabled(NotFound):
    """Nothing is disabled at this address for this owner: webhooks to it are sent. `ident` is the address as known."""

    def __init__(self, url: str) -> None:
        """Keep the address."""
        super().__init__(what="disabled endpoint", ident=url)


class Refused(PostdateError):
    """The request is well-formed, but the state of things forbids it."""


class AlreadyScheduled(Refused):
    """An active action has this thing, target and occurrence already (P26)."""

    def __init__(self, key: str, *, existing: UUID | None) -> None:
        """Keep the colliding key and the action that holds it."""
        self.key = key
        self.existing = existing
        super().__init__(f"already scheduled as action {existing}: {_spoken(key)}")


class AlreadyPublished(Refused):
    """The thing went out, or may have gone out, to this target already: the publish guard (P64)."""

    def __init__(self, key: str, *, existing: UUID | None) -> None:
        """Keep the guarded key and the action whose outcome guards it."""
        self.key = key
        self.existing = existing
        super().__init__(f"already published, or unconfirmed, as action {existing}: {_spoken(key)}")


class OverlapTaken(Refused):
    """An active action of this type holds the overlap key."""

    def __init__(self, overlap_key: str, *, existing: UUID | None) -> None:
        """Keep the overlap key and the action that holds it."""
        self.overlap_key = overlap_key
        self.existing = existing
        super().__init__(f"overlap key {_shown(overlap_key)} is held by action {existing}")


class MoveRefused(Refused):
    """The action is not in a state that allows this move. `status` and `reason` say where it stands."""

    def __init__(self, action_id: UUID, *, verb: str, status: str, reason: str | None = None) -> None:
        """Keep the action, the verb and the state it was found in."""
        self.action_id = action_id
        self.verb = verb
        self.status = status
        self.reason = reason
        state = f"{status} ({reason})" if reason else status
        super().__init__(f"cannot {verb} action {action_id}: it is {state}")


class RuleMoveRefused(Refused):
    """The rule is paused, or has ended, and does not allow this. `status` says where it stands."""

    def __init__(self, rule_id: UUID, *, verb: str, status: str) -> None:
        """Keep the rule, the verb and the status it was found in."""
        self.rule_id = rule_id
        self.verb = verb
        self.status = status
        super().__init__(f"cannot {verb} rule {rule_id}: it is {status}")


class RetriesExhausted(Refused):
    """The retry budget is used up; only a forced retry with a note goes beyond it (P72)."""

    def __init__(self, action_id: UUID, *, attempt_count: int, max_attempts: int) -> None:
        """Keep the attempts made and the budget."""
        self.action_id = action_id
        self.attempt_count = attempt_count
        self.max_attempts = max_attempts
        super().__init__(f"action {action_id} has used {attempt_count} of {max_attempts} attempts")


class SiblingRunning(Refused):
    """Another action for the same thing and target is running right now; look again when it has ended."""

    permanent = False

    def __init__(self, action_id: UUID, *, sibling: UUID) -> None:
        """Keep both actions."""
        self.action_id = action_id
        self.sibling = sibling
        super().__init__(f"action {sibling} for the same thing and target is running")


class NotPaused(Refused):
    """There is no pause of exactly this workspace and action type; another one may stop the same actions."""

    def __init__(self, *, workspace_id: UUID | None, action_type: str | None) -> None:
        """Keep what was to be resumed."""
        self.workspace_id = workspace_id
        self.action_type = action_type
        of_type = "every action type" if action_type is None else f"action type {_shown(action_type)}"
        where = "" if workspace_id is None else f" in workspace {workspace_id}"
        super().__init__(f"there is no pause of {of_type}{where}")


class NotHeld(Refused):
    """The installation is not on hold, so there is nothing to release."""

    def __init__(self) -> None:
        super().__init__("nothing is on hold")


class SourceFailed(PostdateError):
    """A source did not say to the end what it wants in a workspace, so nothing was withdrawn there."""

    permanent = False

    def __init__(self, source: str, workspace_id: UUID | None, *, why: str) -> None:
        """Keep the source, the workspace and the reason; `__cause__` is what the source raised."""
        self.source = source
        self.workspace_id = workspace_id
        self.why = why
        where = "" if workspace_id is None else f" for workspace {workspace_id}"
        super().__init__(f"source {_shown(source)} failed{where}: {why}")


class PassRunning(Refused):
    """Another process is at a pass right now, and one at a time is done; look again when it has ended."""

    permanent = False

    def __init__(self, name: str) -> None:
        """Keep which pass."""
        self.name = name
        super().__init__(f"another process is at a pass, and this one has to wait: {name}")


class OnHold(Refused):
    """The installation is on hold until a person releases it, and so nothing is scheduled by itself."""

    def __init__(self, because: str | None) -> None:
        """Keep why."""
        self.because = because
        super().__init__(f"on hold: {because}")


class IdempotencyConflict(Refused):
    """The idempotency key was used before with another request."""

    def __init__(self, key: str, *, existing: UUID | None) -> None:
        """Keep the key and the action it made."""
        self.key = key
        self.existing = existing
        super().__init__(f"idempotency key {_shown(key)} belongs to another request (action {existing})")


class WebhookRefused(PostdateError):
    """A request is not proved to be a genuine webhook: answer with status 401 and do nothing."""


class WebhookHeaderInvalid(WebhookRefused):
    """A header that the proof needs is missing or garbled. `header` names it, `rule` says what it broke."""

    def __init__(self, header: str, *, rule: str) -> None:
        """Keep the header's name and the rule, not its value, which anybody may have sent."""
        self.header = header
        self.rule = rule
        super().__init__(f"{header} {rule}")


class WebhookOutOfTime(WebhookRefused):
    """Sent too long ago, or in the future: somebody may have kept it and sent it again."""

    def __init__(self, timestamp: int, *, now: datetime, tolerance: timedelta) -> None:
        """Keep when it claims to have been sent (Unix seconds), the time here and the tolerance."""
        self.timestamp = timestamp
        self.now = now
        self.tolerance = tolerance
        off = timestamp - round(now.timestamp())
        super().__init__(f"sent {abs(off)} s {'ahead of' if off > 0 else 'before'} now; {tolerance} is allowed")


class WebhookSignatureWrong(WebhookRefused):
    """None of its signatures was made with one of the secrets over this id, time and body."""

    def __init__(self, webhook_id: str) -> None:
        """Keep the id that it claims."""
        self.webhook_id = webhook_id
        super().__init__(f"no signature of {_shown(webhook_id)} fits the secrets and the body")


class Misconfigured(PostdateError):
    """postdate cannot run as it is set up."""


class NotConfigured(Misconfigured):
    """A setting that a registered action type needs is missing. Raised at start, never at fire time."""

    def __init__(self, setting: str, *, needed_by: str, hint: str = "") -> None:
        """Keep the setting and who needs it."""
        self.setting = setting
        self.needed_by = needed_by
        super().__init__(f"{needed_by} needs {setting}{f': {hint}' if hint else ''}")


class SchemaMismatch(Misconfigured):
    """The database's schema is not the one this version works on."""

    def __init__(self, *, found: str | None, expected: str, newer: bool) -> None:
        """Keep both revisions; `newer` says that the database is ahead of this code."""
        self.found = found
        self.expected = expected
        self.newer = newer
        if newer:
            advice = "it was migrated by a newer postdate: upgrade this installation"
        else:
            advice = "run `postdate db upgrade` on it, or `app.migrate()`"
        standing = "the database has no schema of postdate's" if found is None else f"the schema is at {found}"
        super().__init__(f"{standing}, this version needs {expected}: {advice}")


class ClockUnset(Misconfigured):
    """The clock was asked before it was ever set."""

    def __init__(self) -> None:
        super().__init__("the clock has not been set yet")


class DatabaseTimedOut(PostdateError):
    """The database did not answer in time. What it was asked to write may have been committed all the same."""

    permanent = False

    def __init__(self, seconds: float) -> None:
        """Keep how long was waited."""
        self.seconds = seconds
        super().__init__(f"the database did not answer within {seconds:g} s")


class EngineStuck(PostdateError):
    """A pass of the engine does not end: its event loop is blocked, or what it waits for does not come."""

    permanent = False

    def __init__(self, seconds: float) -> None:
        """Keep for how long nothing has moved."""
        self.seconds = seconds
        super().__init__(f"the engine has not moved for {seconds:.0f} s")


class EngineBroken(PostdateError):
    """A part that the engine cannot work without has ended; `__cause__` says of what."""

    def __init__(self, part: str) -> None:
        """Keep which part."""
        self.part = part
        super().__init__(f"the engine's {part} has ended")


class OutcomesUnwritten(PostdateError):
    """A pass ended before everything that its runs came to could be written; the rest is unconfirmed later."""

    def __init__(self, count: int) -> None:
        """Keep how many outcomes are missing."""
        self.count = count
        super().__init__(f"{count} outcomes could not be written; they turn unconfirmed when their leases run out")


class EngineCancelled(PostdateError):
    """Somebody cancelled the engine's task while its server was running."""

    def __init__(self) -> None:
        super().__init__("the engine's task was cancelled from outside: nothing fires here any more")
