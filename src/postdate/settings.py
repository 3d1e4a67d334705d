"""Which settings does a deployment have?"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from postdate.errors import Misconfigured

_PREFIX = "POSTDATE_"


def _from_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("must be JSON") from None


def _duration(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Read a plain number as seconds: Pydantic takes one from Python, but not from the text of a variable."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    try:
        return read(value)
    except ValidationError:
        raise ValueError("must be seconds, as in 45, or ISO 8601, as in PT45S") from None


LONGEST = timedelta(days=36_525)
"""A hundred years: with it, no sum leaves the calendar."""

Duration = Annotated[timedelta, WrapValidator(_duration), Field(ge=timedelta(0), le=LONGEST)]


class Settings(BaseSettings):
    """The POSTDATE_* settings, validated once. Durations are seconds, or ISO 8601 as in PT30S."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        frozen=True,
        extra="ignore",
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,  # it may be a secret
    )

    database_url: str = Field(default="sqlite:///postdate.db", repr=False)
    """It may hold a password."""
    schema_name: str = Field(default="postdate", validation_alias="POSTDATE_SCHEMA")
    table_prefix: str = ""
    profiles_table: str | None = None
    """A table of the host's, as `schema.table`, whose uuid `id` owns actions instead of our `profiles`."""
    workspaces_table: str | None = None
    """Likewise instead of our `workspaces`."""
    idempotency_ttl: Duration = timedelta(days=7)
    """How long an idempotency key is remembered."""
    lease: Annotated[Duration, Field(ge=timedelta(seconds=1))] = timedelta(seconds=60)
    """How long a claim lasts at most without being renewed, apart from the margin."""
    lease_margin: Duration = timedelta(seconds=30)
    """How much longer than its time-out, or than `lease`, a claim lasts."""
    stop_grace: Duration = timedelta(seconds=30)
    """How long a stopping engine waits for the runs it has started."""
    stuck_after: Duration = timedelta(minutes=5)
    """How long nothing may move in an engine before its process ends itself (`serve`, `worker`); 0 for never."""
    database_timeout: Annotated[Duration, Field(gt=timedelta(0))] = timedelta(seconds=30)
    """How long a call to the database, or a connection to it, may take."""
    listen: bool = True
    """Whether the engine keeps a connection to hear of what other processes schedule, before its next tick."""
    rule_window: Annotated[Duration, Field(ge=timedelta(minutes=10), le=timedelta(days=366))] = timedelta(days=14)
    """How far ahead the occurrences of recurring rules become actions."""
    restore_hold: Duration = timedelta(days=1)
    """How long ago the last tick of any engine may be, before one that begins takes the database for a restored one."""
    zone_policy: Literal["follow", "ask", "pin"] = "follow"
    """What becomes of a wall time that comes to mean another instant: follow it, ask a person, or pin it."""

    email_provider: Literal["smtp", "postmark"] | None = None
    """What sends e-mails; None for the one of them that is set up."""
    smtp_url: SecretStr | None = None
    """`smtp://user:password@host:port`, `smtps://` for TLS from the first byte, `smtp+starttls://`."""
    smtp_from: str | None = None
    """The sender of e-mails that name none, over SMTP."""
    postmark_token: SecretStr | None = None
    """The API token of a Postmark server."""
    postmark_from: str | None = None
    """The sender of e-mails that name none, over Postmark."""
    postmark_stream: str = "outbound"
    """The message stream."""
    postmark_url: str = "https://api.postmarkapp.com"
    """Where Postmark's API is."""
    twilio_account_sid: str | None = None
    """`AC` and 32 hexadecimal digits."""
    twilio_auth_token: SecretStr | None = None
    twilio_from: str | None = None
    """The number or name that an SMS comes from."""
    twilio_messaging_service_sid: str | None = None
    """`MG` and 32 hexadecimal digits: a service that chooses the sender, instead of the above or beside it."""
    twilio_url: str = "https://api.twilio.com"
    """Where Twilio's API is."""
    webhook_secret: SecretStr | None = None
    """Signs webhooks by Standard Webhooks: `whsec_` and base64; several in rotation, newest first."""
    webhook_allow_http: bool = False
    """Whether webhooks may go to plain http addresses."""
    networks: Annotated[dict[str, str], NoDecode, BeforeValidator(_from_json)] = Field(default_factory=dict, repr=False)
    """Where `publish_post` delivers, by target; JSON in the environment: `{"instagram": "https://..."}`."""
    egress_allow: str = ""
    """Where requests may go beside public addresses: `127.0.0.1:8080, 10.1.0.0/16, hooks.internal`."""


def read_settings() -> Settings:
    """Return the POSTDATE_* settings. Raises `Misconfigured` naming the variable and the rule, never its value."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])).upper()
        variable = field if field.startswith(_PREFIX) else _PREFIX + field
        raise Misconfigured(f"{variable}: {first['msg'].removeprefix('Value error, ')}") from None
