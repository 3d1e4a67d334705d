"""What does an action type accept, and when is it refused?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from postdate import Context, Invalid, InvalidPayload, InvalidText, Postdate, UnknownActionType
from postdate.registry import ActionType, Registry, payload_adapter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal


class Post(BaseModel):
    model_config = ConfigDict(extra="forbid")

    thing_id: str
    likes: int = 0


async def publish(ctx: Context, post: Post) -> str:
    return post.thing_id


async def anything(ctx: Context, payload: dict[str, object]) -> None: ...


async def mapping(ctx: Context, payload: Mapping[str, object]) -> None: ...


async def untyped(ctx: Any, payload: Any) -> None: ...


async def unknown(ctx: Context, price: Decimal) -> None: ...


def typed() -> ActionType:
    return ActionType(name="publish_post", handler=publish, payload=payload_adapter(publish))


def test_a_typed_payload_is_validated_and_stored_in_full() -> None:
    assert typed().dump({"thing_id": "p1", "likes": "3"}) == {"thing_id": "p1", "likes": 3}
    assert typed().dump(Post(thing_id="p1")) == {"thing_id": "p1", "likes": 0}


class Trimmed(BaseModel):
    thing_id: str

    @field_validator("thing_id")
    @classmethod
    def trim(cls, value: str) -> str:
        return value.strip()


class Overlooking(Trimmed):
    """A model as an ORM's: two are one whatever their fields say."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("model", [Trimmed, Overlooking])
def test_a_thing_is_stored_as_its_validator_puts_it_however_the_model_came_about(model: type[Trimmed]) -> None:
    """P26: else its key would be another one."""
    kind = ActionType(name="publish_post", handler=publish, payload=TypeAdapter(model))
    changed = model(thing_id="p1")
    changed.thing_id = " p1 "
    for payload in (model(thing_id=" p1 "), {"thing_id": " p1 "}, model.model_construct(thing_id=" p1 "), changed):
        assert kind.dump(payload) == {"thing_id": "p1"}


class Aliased(BaseModel):
    model_config = ConfigDict(extra="forbid", serialize_by_alias=True)

    thing_id: str = Field(alias="thingId")
    likes: int = Field(default=0, validation_alias="likeCount")


@pytest.mark.parametrize("payload", [Aliased(thingId="p1"), {"thingId": "p1"}, {"thing_id": "p1"}])
def test_a_model_with_aliases_is_stored_by_the_names_of_its_fields_and_read_by_either(payload: object) -> None:
    """P26: `thing_id` is what the database knows a thing by; and what was taken in is never refused when it is due."""
    kind = ActionType(name="publish_post", handler=publish, payload=TypeAdapter(Aliased))
    stored = kind.dump(payload)
    assert stored == {"thing_id": "p1", "likes": 0}
    assert kind.load(stored) == kind.load({"thingId": "p1"}) == Aliased(thingId="p1")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"thing_id": "p1", "likes": "many"}, "payload.likes"),
        ({"thing_id": "p1", "like": 1}, "payload.like"),
        ({}, "payload.thing_id"),
        ("p1", "payload"),
        (None, "payload"),
    ],
)
def test_a_wrong_payload_is_refused_by_field_and_rule(wrong: object, field: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        typed().dump(wrong)
    assert caught.value.field == field
    assert caught.value.rule


def test_the_words_of_a_validator_are_told_as_they_are() -> None:
    class Short(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def _said(cls, value: str) -> str:
            raise ValueError(value)

    short = ActionType(name="short", handler=anything, payload=TypeAdapter(Short))
    for words, told in (("must rhyme", "must rhyme"), ("", "Value error, ")):
        with pytest.raises(InvalidPayload) as caught:
            short.dump({"text": words})
        assert caught.value.rule == told


@pytest.mark.parametrize("handler", [anything, mapping, untyped, lambda ctx, payload: None])
def test_a_handler_that_names_no_model_takes_any_object(handler: Any) -> None:
    assert payload_adapter(handler) is None


def test_a_model_that_cannot_be_found_at_run_time_is_refused_with_the_way_out() -> None:
    with pytest.raises(Invalid, match="payload="):
        payload_adapter(unknown)


def test_a_handler_takes_a_context_and_a_payload() -> None:
    with pytest.raises(Invalid, match=r"\(ctx, payload\)"):
        payload_adapter(lambda payload: None)


def test_a_name_is_registered_once_and_unknown_names_list_the_known() -> None:
    registry = Registry()
    registry.add(typed())
    with pytest.raises(Invalid, match="registered already"):
        registry.add(typed())
    with pytest.raises(UnknownActionType, match="publish_post"):
        registry["publish_posts"]
    with pytest.raises(UnknownActionType):
        registry[["publish_post"]]  # type: ignore[index]


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"concurrency": 2.5},
        {"timeout": timedelta(0)},
        {"timeout": timedelta(days=367)},
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\x1fb"},
    ],
)
def test_limits_that_would_run_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((Invalid, InvalidText)):
        ActionType(**{"name": "a", "handler": anything, **wrong})


def test_objects_with_an_async_call_are_awaited() -> None:
    class Handler:
        async def __call__(self, ctx: Context, payload: dict[str, object]) -> None: ...

    assert ActionType(name="a", handler=Handler()).is_async
    assert not ActionType(name="a", handler=lambda ctx, payload: None).is_async


def test_a_policy_is_given_at_registration(tmp_path: Any) -> None:
    app = Postdate(f"sqlite:///{tmp_path}/postdate.db")

    @app.action("publish_post", max_attempts=7, auto_attempts=2, idempotent=True, timeout=1.5, concurrency=3)
    async def handler(ctx: Context, post: Post) -> None: ...

    made = app.kernel.registry["publish_post"]
    assert (made.policy.max_attempts, made.policy.auto_attempts, made.policy.idempotent) == (7, 2, True)
    assert (made.timeout, made.concurrency) == (timedelta(seconds=1.5), 3)


def test_a_lookup_is_a_coroutine_function(tmp_path: Any) -> None:
    async def ask(ctx: Context, payload: Post) -> None: ...

    with pytest.raises(Invalid, match=r"lookup: must be defined with `async def`"):
        ActionType(name="a", handler=publish, lookup=lambda ctx, payload: None)
    app = Postdate(f"sqlite:///{tmp_path}/postdate.db")
    app.action("publish_post", lookup=ask)(publish)
    assert app.kernel.registry["publish_post"].lookup is ask
