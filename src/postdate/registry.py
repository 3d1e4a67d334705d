"""What does an action type say about itself, and which ones does this process know?"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeGuard, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from postdate.domain import text
from postdate.domain.intent import check_zone_policy
from postdate.domain.payload import checked
from postdate.domain.retry import LONGEST_WAIT
from postdate.domain.settle import Policy
from postdate.errors import Invalid, InvalidPayload, NotConfigured, UnknownActionType

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails
    from sqlalchemy import Connection

    from postdate.domain.action import Action
    from postdate.domain.intent import ZonePolicy

Handler = Callable[..., Any]
"""`handler(ctx, payload)`, sync or async. It returns `Published`, the provider's id or None, or raises an outcome."""

Settled = Callable[["Connection", "Sequence[Action]"], None]
"""`settled(connection, actions)`: a function over a synchronous SQLAlchemy connection that never ends its transaction.

It is called for every outcome and verdict, a crashed worker's included, with the actions as they then stand.
"""


Admit = Callable[[Any, str | None], None]
"""`admit(payload, target)`: raises `Invalid` for what the handler could never do."""


@dataclass(frozen=True, kw_only=True)
class ActionType:
    """A kind of action: its name, its handler and its limits."""

    name: str
    handler: Handler
    payload: TypeAdapter[Any] | None = None
    """Validates the payload; None lets any JSON object through."""
    policy: Policy = field(default_factory=Policy)
    admit: Admit | None = None
    """Asked about each action that is scheduled; settings may change until it runs, so the handler looks again."""
    timeout: timedelta = timedelta(seconds=60)
    concurrency: int = 20
    """How many runs this process has at once."""
    settled: Settled | None = None
    """Told what became of its actions, in the transaction that settles them."""
    configured: Callable[[], None] | None = None
    """Called when the engine starts; raises `NotConfigured` where a setting is missing."""
    required: bool = True
    """Whether an engine does not start while a setting is missing; else it goes on without the type, and says so.

    What is asked for by name is required.
    """
    lookup: Handler | None = None
    """`await lookup(ctx, payload)`: asks the provider what became of a doubtful run, and sends nothing.

    It returns `Published` where the provider has it, `NotSent` where it surely has not, and raises `Unconfirmed` where
    that cannot be told.
    """
    close: Callable[[], Awaitable[None]] | None = None
    """Awaited when the engine has stopped, in its loop: lets go of connections that are kept for the next run."""
    ignores_quiet_hours: bool = False
    """Whether it goes out in quiet hours too: a link for a forgotten password, a call to a machine."""
    zone_policy: ZonePolicy | None = None
    """What becomes of a wall time that comes to mean another instant; None for the setting `zone_policy`."""

    def __post_init__(self) -> None:
        """Refuse limits that would never run anything."""
        text.name(self.name, field="action_type", limit=text.MAX_TYPE)
        if not _is_number(self.concurrency) or not self.concurrency >= 1 or self.concurrency % 1:
            raise Invalid(field="concurrency", rule="must be a whole number, at least 1", value=self.concurrency)
        if self.timeout <= timedelta(0):
            raise Invalid(field="timeout", rule="must be longer than nothing", value=self.timeout)
        if self.timeout > LONGEST_WAIT:  # one that ends beyond the calendar would keep every claim from being made
            raise Invalid(field="timeout", rule=f"must be at most {LONGEST_WAIT.days} days", value=self.timeout)
        check_zone_policy(self.zone_policy)
        if self.lookup is not None and not _is_async(self.lookup):
            raise Invalid(field="lookup", rule="must be defined with `async def`", value=self.lookup)

    @cached_property
    def is_async(self) -> bool:
        """Whether the handler is awaited rather than run in a thread."""
        return _is_async(self.handler)

    @property
    def lacks(self) -> NotConfigured | None:
        """What it cannot run without; None where it can."""
        try:
            if self.configured is not None:
                self.configured()
        except NotConfigured as missing:
            return missing
        return None

    def dump(self, payload: object, *, target: str | None = None) -> dict[str, object]:
        """Return `payload` (a model or a mapping) as the JSON object to store for an action to that target.

        It has the names of the model's fields, not their aliases: by `thing_id` the database knows a thing.
        Raises `InvalidPayload` naming the field and the rule, or what `admit` raises.
        """
        plain = payload.model_dump(mode="json", by_alias=False) if isinstance(payload, BaseModel) else payload
        if not isinstance(plain, Mapping):
            raise InvalidPayload(field="payload", rule="must be a JSON object", value=payload)
        stored = checked(dict(plain))
        loaded = self.load(stored)
        if self.admit is not None:
            self.admit(loaded, target)
        if self.payload is None or _same(loaded, payload):
            return stored
        dumped = self.payload.dump_python(loaded, mode="json", by_alias=False)
        # by their texts: `==` takes 1, 1.0 and True for one
        return stored if repr(dumped) == repr(stored) else checked(dumped)

    def load(self, stored: Mapping[str, object]) -> Any:
        """Return the stored payload as the handler wants it, its fields by name or alias. Raises `InvalidPayload`."""
        if self.payload is None:
            return stored
        try:
            return self.payload.validate_python(stored, by_alias=True, by_name=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(("payload", *map(str, first["loc"])))
            raise InvalidPayload(field=where, rule=_rule(first)) from None
        except Exception as error:  # a validator's: Pydantic lets through what is no ValueError
            rule = f"cannot be validated: {type(error).__name__}: {text.cleaned(error, limit=200)}"
            raise InvalidPayload(field="payload", rule=rule) from error


def _same(loaded: object, payload: object) -> bool:
    """Whether a model came back as it went in, by every field: one with an `__eq__` of its own may overlook some."""
    return type(loaded) is type(payload) and type(loaded).__eq__ is BaseModel.__eq__ and loaded == payload


def _rule(found: ErrorDetails) -> str:
    """Return what is wrong, in a validator's own words where it has some: Pydantic sets "Value error, " before them."""
    raised = found.get("ctx", {}).get("error")
    return (str(raised) if isinstance(raised, Exception) else "") or found["msg"]


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)


@dataclass(frozen=True, kw_only=True)
class Served:
    """The types that an engine runs, and those that it goes on without."""

    types: Sequence[ActionType]
    left_out: Mapping[str, NotConfigured]
    """What each of them lacks."""


class Registry:
    """The action types that this process knows."""

    def __init__(self) -> None:
        """Start with none."""
        self._types: dict[str, ActionType] = {}

    def add(self, action_type: ActionType) -> None:
        """Register a type. Raises `Invalid` if its name is taken."""
        if action_type.name in self._types:
            raise Invalid(field="action_type", rule="is registered already", value=action_type.name)
        self._types[action_type.name] = action_type

    def __getitem__(self, name: str) -> ActionType:
        """Return a type by its name. Raises `UnknownActionType`."""
        try:
            return self._types[name]
        except Exception:  # noqa: BLE001 - what is no text may raise anything when asked for its hash
            raise UnknownActionType(name, known=list(self._types)) from None

    def chosen(self, names: Iterable[str]) -> list[ActionType]:
        """Return types by their names. Raises `UnknownActionType`, or `Invalid` for what is no list of names."""
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise Invalid(field="types", rule="must be a list of names of action types", value=names)
        return [self[name] for name in names]

    def served(self) -> Served:
        """Return what an engine runs that is asked for no types by name.

        Raises `NotConfigured` where nothing that is registered is set up.
        """
        left_out = {each.name: lacks for each in self if not each.required and (lacks := each.lacks) is not None}
        types = [each for each in self if each.name not in left_out]
        if left_out and not types:
            raise next(iter(left_out.values()))
        return Served(types=types, left_out=left_out)

    def get(self, name: str) -> ActionType | None:
        """Return a type by its name, or None."""
        return self._types.get(name)

    def __iter__(self) -> Iterator[ActionType]:
        """Iterate over the types in the order of their registration."""
        return iter(self._types.values())

    def __len__(self) -> int:
        """Return how many types there are."""
        return len(self._types)


def time_limit(value: object) -> timedelta:
    """Return a time limit given in seconds, or as a timedelta. Raises `Invalid`."""
    if isinstance(value, timedelta):
        return value
    if not _is_number(value):
        raise Invalid(field="timeout", rule="must be seconds, or a timedelta", value=value)
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise Invalid(field="timeout", rule=f"must be at most {LONGEST_WAIT.days} days", value=value) from None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def payload_adapter(handler: Handler) -> TypeAdapter[Any] | None:
    """Return what validates the handler's second parameter; None where it says nothing, or asks for a mapping."""
    parameters = list(inspect.signature(handler).parameters.values())
    if len(parameters) != 2:  # noqa: PLR2004 - ctx and payload
        raise Invalid(field="handler", rule="must take (ctx, payload)", value=getattr(handler, "__name__", handler))
    annotation = _resolved(parameters[1].annotation, handler)
    if annotation in {inspect.Parameter.empty, dict, Any, object} or get_origin(annotation) in {
        dict,
        Mapping,
    }:
        return None
    return TypeAdapter(annotation)


def _resolved(annotation: Any, handler: Handler) -> Any:
    """Resolve this annotation alone: others may name what is imported for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    holder = SimpleNamespace(__annotations__={"payload": annotation})
    try:
        return get_type_hints(holder, globalns=_globals_of(handler))["payload"]
    except NameError:
        rule = "cannot be found at run time: define it at module level, or pass payload=..."
        raise Invalid(field="payload", rule=rule, value=annotation) from None


def _globals_of(handler: Handler) -> dict[str, Any]:
    """Return the names that the handler's module knows; of an object, those of its `__call__`."""
    function = inspect.unwrap(handler.func if isinstance(handler, partial) else handler)
    found = getattr(function, "__globals__", None) or getattr(type(function).__call__, "__globals__", {})
    return {"Any": Any, "Mapping": Mapping, **found}  # which linters move out of sight of the run time
