"""How does a post reach the network that it is for?

Each target has a receiver of one's own, which knows the network's API: POSTDATE_NETWORKS says where. It gets a signed
webhook with the post and answers when the network has it. What its answer means stands in `postdate.providers.webhook`.

```json
{"type": "publish_post", "timestamp": "2027-03-14T09:00:00Z",
 "data": {"target": "instagram", "thing_id": "post-1", "text": "Hi", "media": [], "extra": {}}}
```
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from postdate.domain import text
from postdate.domain.outcome import Published, Rejected
from postdate.errors import Invalid, NotConfigured
from postdate.providers.web_url import MAX_URL, WebUrl, https_url, web_url
from postdate.providers.webhook import envelope, post_signed, signing_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from postdate.context import Context
    from postdate.settings import Settings

NEEDED_BY = "publish_post"
MAX_MEDIA = 50

Media = Annotated[list[WebUrl], Field(max_length=MAX_MEDIA)]


class PublishPost(BaseModel):
    """The payload of `publish_post`: what is to appear on the network that the action's target names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thing_id: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    """The post. It goes to each target once."""
    text: str = ""
    media: Media = Field(default_factory=list)
    """Addresses of pictures and films, which the receiver fetches."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """What else the receiver needs; postdate does not look into it."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.text and not self.media:
            raise ValueError("needs text, media or both")
        return self


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """The provider of `publish_post`."""

    networks: Mapping[str, str] = field(repr=False)
    """Where each target's receiver is; an address may hold a token of its own."""
    keys: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Build it from POSTDATE_NETWORKS and POSTDATE_WEBHOOK_SECRET.

        Raises `NotConfigured` where one is missing or cannot be understood.
        """
        if not settings.networks:
            hint = 'such as {"instagram": "https://hooks.example.com/instagram"}'
            raise NotConfigured("POSTDATE_NETWORKS", needed_by=NEEDED_BY, hint=hint)
        for target, url in settings.networks.items():
            try:
                _check(target, url, allow_http=settings.webhook_allow_http)
            except ValueError as error:
                raise NotConfigured("POSTDATE_NETWORKS", needed_by=NEEDED_BY, hint=f"{target!r} {error}") from None
        keys = signing_keys(settings, needed_by=NEEDED_BY)
        if not keys:
            raise NotConfigured("POSTDATE_WEBHOOK_SECRET", needed_by=NEEDED_BY, hint="posts are always signed")
        return cls(networks=dict(settings.networks), keys=keys)

    def admit(self, _payload: PublishPost, target: str | None) -> None:
        """Refuse a target that no network has, before it is scheduled. Raises `Invalid`."""
        if target not in self.networks:
            raise Invalid(field="target", rule=self._unknown(), value=target)

    async def publish(self, ctx: Context, payload: PublishPost) -> Published:
        """Hand the post over, signed; the provider's id is the `id` in the JSON of the answer, else its `x-request-id`.

        Every attempt says the same but for the time of its signature, under the same `webhook-id`.
        """
        url = self.networks.get(ctx.target or "")
        if url is None:
            raise Rejected(f"target {ctx.target!r} {self._unknown()}")
        body = envelope(ctx, "publish_post", {"target": ctx.target, **payload.model_dump(mode="json")})
        reply = await post_signed(ctx, url=url, body=body, keys=self.keys)
        return Published(provider_id=_id_in(reply.json()) or reply.headers.get("x-request-id") or None)

    def _unknown(self) -> str:
        return f"is none of POSTDATE_NETWORKS (known: {', '.join(sorted(self.networks))})"


def _check(target: str, url: str, *, allow_http: bool) -> None:
    try:
        text.name(target, field="target")
    except Invalid as error:
        raise ValueError(f"is no target: {error.rule}") from None
    if len(url) > MAX_URL:
        raise ValueError(f"must have at most {MAX_URL} characters of address")
    web_url(url)
    if not allow_http:
        https_url(url)


def _id_in(told: Mapping[str, object]) -> str | None:
    found = told.get("id")
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) and found != "" else None
