"""How is postdate put together?

`Postdate` holds the action types and the settings, and offers every verb twice over one function: awaited as
`app.<verb>`, called as `app.sync.<verb>`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import structlog
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

from postdate import verbs
from postdate.clock import SystemClock
from postdate.domain.settle import Policy
from postdate.engine.background import Background
from postdate.engine.expand import Expander
from postdate.engine.loop import Engine, TickReport
from postdate.engine.reconcile import Reconciler
from postdate.engine.zones import ZonePass
from postdate.errors import Misconfigured
from postdate.kernel import Kernel, Unbegun, ZoneOf
from postdate.providers.http import http_client
from postdate.registry import ActionType, Handler, Registry, payload_adapter, time_limit
from postdate.settings import Settings, read_settings
from postdate.sources import DEFAULT_TIMEOUT
from postdate.store.database import Database
from postdate.store.migrate import upgrade
from postdate.store.names import Names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
    from datetime import timedelta
    from uuid import UUID

    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

    from postdate.clock import Clock
    from postdate.domain.intent import ZonePolicy
    from postdate.domain.retry import Backoff
    from postdate.engine.fulfil import Planned
    from postdate.engine.periodic import Pass
    from postdate.engine.tally import ReconcileReport
    from postdate.errors import EngineStuck
    from postdate.registry import Settled
    from postdate.sources import Source, SqlSource

_log = structlog.get_logger("postdate")

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Handler)


def _called(verb: Callable[Concatenate[Kernel, P], R]) -> Callable[Concatenate[SyncVerbs, P], R]:
    def bound(self: SyncVerbs, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return verb(self._app.kernel, *args, **kwargs)

    update_wrapper(bound, verb)
    return bound


def _awaited(verb: Callable[Concatenate[Kernel, P], R]) -> Callable[Concatenate[Postdate, P], Awaitable[R]]:
    async def bound(self: Postdate, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def call(connection: Connection | Session | Unbegun) -> R:
            kwargs["connection"] = connection
            return verb(self.kernel, *args, **kwargs)

        match kwargs.get("connection"):
            case None:
                return await self.kernel.connected(lambda connection: call(Unbegun(connection)))
            case AsyncConnection() | AsyncSession() as guest:
                return await guest.run_sync(call)
            case async_scoped_session() as scoped:
                session: AsyncSession = scoped()
                return await session.run_sync(call)
            case other:
                message = f"connection= takes an AsyncConnection or AsyncSession here, not {type(other).__name__}"
                raise Misconfigured(message)

    update_wrapper(bound, verb)
    return bound


class SyncVerbs:
    """The verbs for synchronous callers.

    `connection=` takes a SQLAlchemy Connection or (scoped) Session, or a connection of sqlite3, psycopg or Django.
    """

    def __init__(self, app: Postdate) -> None:
        self._app = app

    schedule = _called(verbs.schedule)
    schedule_many = _called(verbs.schedule_many)
    cancel = _called(verbs.cancel)
    reschedule = _called(verbs.reschedule)
    post_now = _called(verbs.post_now)
    retry = _called(verbs.retry)
    confirm = _called(verbs.confirm)
    dismiss = _called(verbs.dismiss)
    get = _called(verbs.get)
    list = _called(verbs.list_actions)
    history = _called(verbs.history)
    pause = _called(verbs.pause)
    resume = _called(verbs.resume)
    paused = _called(verbs.paused)
    ended_pauses = _called(verbs.ended_pauses)
    set_quiet_hours = _called(verbs.set_quiet_hours)
    clear_quiet_hours = _called(verbs.clear_quiet_hours)
    quiet_hours = _called(verbs.quiet_hours)
    held = _called(verbs.held)
    release = _called(verbs.release)
    disabled_endpoints = _called(verbs.disabled_endpoints)
    enable_endpoint = _called(verbs.enable_endpoint)
    check_zones = _called(verbs.check_zones)
    follow_zone = _called(verbs.follow_zone)
    pin_zone = _called(verbs.pin_zone)
    create_rule = _called(verbs.create_rule)
    update_rule = _called(verbs.update_rule)
    pause_rule = _called(verbs.pause_rule)
    resume_rule = _called(verbs.resume_rule)
    end_rule = _called(verbs.end_rule)
    skip_occurrence = _called(verbs.skip_occurrence)
    move_occurrence = _called(verbs.move_occurrence)
    override_occurrence = _called(verbs.override_occurrence)
    run_now = _called(verbs.run_now)
    preview_rule = _called(verbs.preview_rule)
    get_rule = _called(verbs.get_rule)
    list_rules = _called(verbs.list_rules)
    rule_history = _called(verbs.rule_history)
    missed = _called(verbs.missed)
    set_holidays = _called(verbs.set_holidays)
    holidays = _called(verbs.holidays)


class Postdate:
    """An application's action types, and everything that can be asked of them.

    `connection=` of the awaited verbs takes a SQLAlchemy AsyncConnection or (scoped) AsyncSession.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        settings: Settings | None = None,
        zone_of: ZoneOf | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Take the database's URL, else that of the settings.

        `zone_of(workspace, user)` answers the IANA zone for wall times that come without one. Raises
        `Misconfigured` for a URL that cannot be used; nothing is connected yet.
        """
        settings = settings or read_settings()
        if database_url is not None:
            settings = settings.model_copy(update={"database_url": database_url})
        self.settings = settings
        self.kernel = Kernel(
            database=Database(settings.database_url, timeout=settings.database_timeout),
            names=Names(
                schema=settings.schema_name,
                prefix=settings.table_prefix,
                profiles=settings.profiles_table,
                workspaces=settings.workspaces_table,
            ),
            settings=settings,
            registry=Registry(),
            clock=clock or SystemClock(),
            zone_of=zone_of,
        )
        self.sync = SyncVerbs(self)
        self._background: Background | None = None

    schedule = _awaited(verbs.schedule)
    schedule_many = _awaited(verbs.schedule_many)
    cancel = _awaited(verbs.cancel)
    reschedule = _awaited(verbs.reschedule)
    post_now = _awaited(verbs.post_now)
    retry = _awaited(verbs.retry)
    confirm = _awaited(verbs.confirm)
    dismiss = _awaited(verbs.dismiss)
    get = _awaited(verbs.get)
    list = _awaited(verbs.list_actions)
    history = _awaited(verbs.history)
    pause = _awaited(verbs.pause)
    resume = _awaited(verbs.resume)
    paused = _awaited(verbs.paused)
    ended_pauses = _awaited(verbs.ended_pauses)
    set_quiet_hours = _awaited(verbs.set_quiet_hours)
    clear_quiet_hours = _awaited(verbs.clear_quiet_hours)
    quiet_hours = _awaited(verbs.quiet_hours)
    held = _awaited(verbs.held)
    release = _awaited(verbs.release)
    disabled_endpoints = _awaited(verbs.disabled_endpoints)
    enable_endpoint = _awaited(verbs.enable_endpoint)
    check_zones = _awaited(verbs.check_zones)
    follow_zone = _awaited(verbs.follow_zone)
    pin_zone = _awaited(verbs.pin_zone)
    create_rule = _awaited(verbs.create_rule)
    update_rule = _awaited(verbs.update_rule)
    pause_rule = _awaited(verbs.pause_rule)
    resume_rule = _awaited(verbs.resume_rule)
    end_rule = _awaited(verbs.end_rule)
    skip_occurrence = _awaited(verbs.skip_occurrence)
    move_occurrence = _awaited(verbs.move_occurrence)
    override_occurrence = _awaited(verbs.override_occurrence)
    run_now = _awaited(verbs.run_now)
    preview_rule = _awaited(verbs.preview_rule)
    get_rule = _awaited(verbs.get_rule)
    list_rules = _awaited(verbs.list_rules)
    rule_history = _awaited(verbs.rule_history)
    missed = _awaited(verbs.missed)
    set_holidays = _awaited(verbs.set_holidays)
    holidays = _awaited(verbs.holidays)

    def action(
        self,
        name: str,
        *,
        payload: Any = None,
        auto_attempts: int = Policy.auto_attempts,
        max_attempts: int = Policy.max_attempts,
        idempotent: bool = False,
        backoff: Backoff | None = None,
        timeout: float | timedelta = ActionType.timeout,
        concurrency: int = ActionType.concurrency,
        settled: Settled | None = None,
        lookup: Handler | None = None,
        ignores_quiet_hours: bool = False,
        zone_policy: ZonePolicy | None = None,
    ) -> Callable[[H], H]:
        """Register the decorated `handler(ctx, payload)`, sync or async, for actions of type `name`.

        The payload is validated by the annotation of the second parameter, or by `payload`. `timeout` is in
        seconds; `settled(connection, actions)` is told what became of the actions, in the transaction that settles
        them; `await lookup(ctx, payload)` asks the provider what became of a doubtful run (see `ActionType.lookup`).
        Raises `Invalid` for a name that is taken, or limits that would run nothing.
        """

        def register(handler: H) -> H:
            self.include(
                ActionType(
                    name=name,
                    handler=handler,
                    payload=payload_adapter(handler) if payload is None else TypeAdapter(payload),
                    policy=Policy(
                        auto_attempts=auto_attempts,
                        max_attempts=max_attempts,
                        idempotent=idempotent,
                        **({} if backoff is None else {"backoff": backoff}),
                    ),
                    timeout=time_limit(timeout),
                    concurrency=concurrency,
                    settled=settled,
                    lookup=lookup,
                    ignores_quiet_hours=ignores_quiet_hours,
                    zone_policy=zone_policy,
                )
            )
            return handler

        return register

    def include(self, *action_types: ActionType) -> None:
        """Register action types made elsewhere, such as the built-in ones. Raises `Invalid` where a name is taken."""
        for action_type in action_types:
            self.kernel.registry.add(action_type)

    def source(
        self,
        name: str,
        source: Source | SqlSource,
        *,
        workspaces: Iterable[UUID | None] | None = None,
        timeout: float | timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        """Register what says what should be scheduled: the engine makes the queue hold that, once a minute (P44).

        It is asked for each of `workspaces`, by default for every one that there is; None among them stands for what
        has no workspace. `timeout` is in seconds, for one workspace. Raises `Invalid` for a name that is taken.
        """
        self.kernel.sources.add(name, source, workspaces=workspaces, timeout=time_limit(timeout))

    async def reconcile(self, *, dry_run: bool = False) -> ReconcileReport:
        """Ask every source now what it wants, and make the queue hold that; the engine does it once a minute.

        A dry run counts what it would do and writes nothing. Raises `PassRunning` while another process does it, and
        `OnHold` where nothing may be scheduled by itself.
        """
        return await verbs.reconcile(self.kernel, dry_run=dry_run)

    async def plan_for(self, thing_id: str, *, source: str, workspace: UUID | str | None = None) -> Sequence[Planned]:
        """Return what the reconciler would do about one thing, for a user interface to show.

        It is an answer and no order: the pass plans anew, whatever was answered here (P56). Raises `Invalid`,
        `UnknownSource`, and `SourceFailed` where the source does not say.
        """
        return await verbs.plan_for(self.kernel, thing_id, source=source, workspace=workspace)

    def on(self, database_url: str, *, clock: Clock | None = None) -> Postdate:
        """Return this app on another database, and by `clock` where given.

        The action types are shared: one that is registered with either is known to both. Raises `Misconfigured`.
        """
        settings = self.settings.model_copy(update={"database_url": database_url})
        other = Postdate(settings=settings, zone_of=self.kernel.zone_of, clock=clock)
        other.kernel.registry = self.kernel.registry
        other.kernel.sources = self.kernel.sources
        return other

    @contextmanager
    def working_on(self, database_url: str, *, clock: Clock | None = None) -> Iterator[None]:
        """Let this very app work on another database, and by `clock` where given, within the block: for tests.

        It is for every thread, so that a server's do so too; no engine of this app may be running when it begins.
        """
        before, there = (self.settings, self.kernel), self.on(database_url, clock=clock)
        self.settings, self.kernel = there.settings, there.kernel
        try:
            yield
        finally:
            there.kernel.database.close_sync()
            self.settings, self.kernel = before

    def migrate(self) -> None:
        """Bring the database's schema up to this version."""
        upgrade(self.settings.database_url, self.kernel.names)

    async def run(
        self,
        stop: asyncio.Event | None = None,
        *,
        types: Sequence[str] | None = None,
        stuck: Callable[[EngineStuck], None] | None = None,
    ) -> None:
        """Run the engine until `stop` is set: fire what is due, for all action types or for `types`.

        Without `types`, those that come with postdate and are not set up are left out, which is logged. Raises
        `NotConfigured`, `SchemaMismatch` or `UnknownActionType` before anything is claimed. `stuck` is called, from
        another thread, when nothing has moved for as long as the setting `stuck_after` says: to end the process.
        """
        async with self._engine(types) as engine:
            await engine.run(stop or asyncio.Event(), stuck=stuck)

    async def tick(
        self, *, types: Sequence[str] | None = None, stuck: Callable[[EngineStuck], None] | None = None
    ) -> TickReport:
        """Do one bounded pass: fire what is due now, wait for it, and report. `stuck` is as for `run`."""
        async with self._engine(types) as engine:
            return await engine.run_once(await self.kernel.read_clock(), stuck=stuck)

    @asynccontextmanager
    async def lifespan(self, _asgi: object = None, *, types: Sequence[str] | None = None) -> AsyncIterator[None]:
        """Run the engine beside an ASGI server, as in `FastAPI(lifespan=app.lifespan)`; close the database at the end.

        The server does not start where the engine cannot begin: raises what `run` raises, or the database's error. An
        engine that fails later is logged at level error and begun again, with `engine_error` set in between; where it
        is down when the server stops, its error is raised then.
        """
        if self._background is not None:
            raise Misconfigured("the engine of this app runs already in this process")
        self._background = Background(partial(self._engine, types))
        try:
            async with self._background.running():
                yield
        finally:
            self._background = None
            await self.close()

    @property
    def engine_error(self) -> Exception | None:
        """What the engine of `lifespan` or its last pass failed with, until one goes well again: for health checks."""
        return None if self._background is None else self._background.error

    @asynccontextmanager
    async def _engine(self, types: Sequence[str] | None) -> AsyncIterator[Engine]:
        chosen = self._served() if types is None else self.kernel.registry.chosen(types)
        async with http_client(self.settings) as http, AsyncExitStack() as stack:
            for action_type in chosen:
                if action_type.close is not None:
                    stack.push_async_callback(action_type.close)
            yield Engine(self.kernel, chosen, http, passes=self._passes())

    def _served(self) -> Sequence[ActionType]:
        """Return the types that an engine runs which is asked for none, and log which it does without."""
        served = self.kernel.registry.served()
        if served.left_out:
            missing = [str(lacks) for lacks in served.left_out.values()]
            _log.warning("action types that are not set up are not served", types=[*served.left_out], missing=missing)
        return served.types

    def _passes(self) -> Sequence[Pass]:
        """Return what an engine of this app does now and then."""
        passes: list[Pass] = [Expander(self.kernel), ZonePass(self.kernel)]
        if len(self.kernel.sources):
            passes.append(Reconciler(self.kernel))
        return passes

    async def close(self) -> None:
        """Close every connection."""
        await self.kernel.database.close()
