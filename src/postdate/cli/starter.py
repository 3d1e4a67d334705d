"""What do the first files of a new project say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import make_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUILT_IN: Mapping[str, Sequence[str]] = {
    "reminder": (),
    "send_email": (
        "# Where mail is handed over: smtp://, smtps:// or smtp+starttls://, user:password@host:port.",
        "POSTDATE_SMTP_URL=smtp://localhost:25",
        "POSTDATE_SMTP_FROM=Shop <shop@example.com>",
    ),
    "send_sms": (
        "# From Twilio's console.",
        "POSTDATE_TWILIO_ACCOUNT_SID=AC00000000000000000000000000000000",
        "POSTDATE_TWILIO_AUTH_TOKEN=change-me",
        "POSTDATE_TWILIO_FROM=+15005550006",
    ),
    "call_webhook": (
        "# Signs webhooks, so that receivers know them from forgeries: whsec_ and the base64 of 24 to 64 bytes.",
        "# POSTDATE_WEBHOOK_SECRET=",
    ),
    "publish_post": (
        "# Where posts are delivered, by target.",
        'POSTDATE_NETWORKS={"instagram": "https://hooks.example.com/instagram"}',
    ),
}
"""The action types that come with postdate, and the lines of `.env.example` that each needs."""

_HEAD = '''"""What fires, and how: `postdate serve app:app` serves it.

Before that, `cp .env.example .env` and `postdate db upgrade --app app:app`; whether all
is well, `postdate doctor --app app:app` says.
"""

from __future__ import annotations

'''

_APP = '''

class AppSettings(Settings):
    """The environment's POSTDATE_* variables, else what stands in .env."""

    model_config = SettingsConfigDict(env_file=Path(__file__).with_name(".env"))


app = Postdate(
    settings=AppSettings(),
%(zone)s)

# A run that says NotSent is repeated by itself, so often in all; then it fails.
AUTO_ATTEMPTS = %(auto_attempts)d
# Retries by a person count too, and end here.
MAX_ATTEMPTS = %(max_attempts)d
'''

_ZONE = """    # The zone of wall times that come without one.
    zone_of=lambda _workspace, _user: "%s",
"""

_NO_ZONE = """    # A wall time needs a zone: tz=, else the workspace's, else the user's.
"""

_INCLUDE = """
# They come with postdate; .env.example lists what they need.
BUILT_IN = {%s}
app.include(
    *(
        replace(
            each,
            policy=replace(
                each.policy, auto_attempts=AUTO_ATTEMPTS, max_attempts=MAX_ATTEMPTS
            ),
        )
        for each in builtin_action_types(app.settings)
        if each.name in BUILT_IN
    )
)
"""

_OWN = '''

class %(model)s(BaseModel):
    """What is stored with an action of type `%(name)s`."""

    thing_id: str
    """What it is about: of one thing and target, one action goes out at most."""
    text: str


@app.action(
    "%(name)s",
    timeout=30,  # seconds
    auto_attempts=AUTO_ATTEMPTS,
    max_attempts=MAX_ATTEMPTS,
)
async def %(name)s(ctx: Context, payload: %(model)s) -> str:
    """Hand it over, and return the provider's id for it."""
    if not payload.text:
        # Refused for good: it fails at once.
        raise Rejected("there is nothing to say")
    # Here goes your call to the provider, by ctx.http or a client of its own. Where
    # nothing was sent, `raise NotSent("why")`: it is tried again later. Whatever else
    # is raised leaves doubt, and a person decides.
    ctx.log.info("%(name)s", thing=payload.thing_id, target=ctx.target)
    return f"{payload.thing_id}-{ctx.idempotency_key}"
'''


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What somebody wants to begin with."""

    types: Sequence[str]
    """Of `BUILT_IN`, or of their own: lower-case words joined by single underscores."""
    tz: str | None
    """The zone of wall times that come without one."""
    auto_attempts: int
    max_attempts: int
    database_url: str


def starter(wanted: Wanted) -> dict[str, str]:
    """Return the files of the project, by name."""
    return {"app.py": _app(wanted), ".env.example": _settings(wanted)}


def _app(wanted: Wanted) -> str:
    own = [name for name in wanted.types if name not in BUILT_IN]
    ready = [name for name in wanted.types if name in BUILT_IN]
    values = {
        "zone": _NO_ZONE if wanted.tz is None else _ZONE % wanted.tz,
        "auto_attempts": wanted.auto_attempts,
        "max_attempts": wanted.max_attempts,
    }
    parts = [_HEAD, _imports(own=bool(own), ready=bool(ready)), _APP % values]
    if ready:
        parts.append(_INCLUDE % ", ".join(f'"{name}"' for name in sorted(ready)))
    parts += [_OWN % {"name": name, "model": _model(name)} for name in own]
    return "".join(parts)


def _imports(*, own: bool, ready: bool) -> str:
    names = {"Postdate", "Settings"}
    names |= {"Context", "Rejected"} if own else set()
    listed = sorted(names) + (["builtin_action_types"] if ready else [])
    return "\n".join(
        [
            *(["from dataclasses import replace"] if ready else []),
            "from pathlib import Path",
            "",
            f"from postdate import {', '.join(listed)}",
            *(["from pydantic import BaseModel"] if own else []),
            "from pydantic_settings import SettingsConfigDict",
            "",
        ]
    )


def _model(name: str) -> str:
    """Return the name of the type's payload: `PublishStoryPayload` for `publish_story`."""
    return f"{''.join(word.capitalize() for word in name.split('_'))}Payload"


def _settings(wanted: Wanted) -> str:
    url = make_url(wanted.database_url)
    if url.password is not None:
        url = url.set(password="change-me")  # noqa: S106 - this file is for sharing
    lines = [
        "# Copy this file to .env, and fill it in. `postdate docs operations#settings` tells all.",
        "",
        "# sqlite:///file.db, or postgresql://user:password@host/name",
        f"POSTDATE_DATABASE_URL={url.render_as_string(hide_password=False)}",
    ]
    for name in wanted.types:
        lines += ["", *BUILT_IN[name]] if BUILT_IN.get(name) else []
    return "\n".join(lines) + "\n"
