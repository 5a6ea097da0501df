"""Typed methods: models as body and response; faults name members and never show values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, Field

from reside.model.errors import InvalidInput, ResideError
from reside.model.manifest import ContractManifest
from reside.replica import Replica
from reside.replica.call import Call
from reside.replica.typed_methods import adapt, dump, parse_response

if TYPE_CHECKING:
    from reside.replica import Json

pytestmark = pytest.mark.anyio
IDENTITY = "r.example/c.v1"


class Greet(BaseModel):
    """A body."""

    name: str
    times: int = Field(default=1, alias="howOften")


class Greeting(BaseModel):
    """A response."""

    message: str
    sent_at: int = Field(default=0, serialization_alias="sentAt")


def call(body: dict[str, Any]) -> Call:
    nothing: Any = None
    return Call(nothing, nothing, IDENTITY, "greet", body)


async def test_a_handler_gets_the_body_as_its_model_and_returns_a_model() -> None:
    async def greet(call: Call, body: Greet) -> Greeting:
        return Greeting(message=f"{body.name} {body.times} {call.method}")

    assert await adapt(greet)(call({"name": "Ada", "howOften": 2})) == {"message": "Ada 2 greet", "sentAt": 0}


async def test_a_handler_without_a_model_gets_the_call_alone_and_returns_json() -> None:
    async def greet(call: Call) -> Json:
        return call.body

    assert await adapt(greet)(call({"any": [1]})) == {"any": [1]}


async def test_a_body_that_does_not_match_names_the_members_and_no_values() -> None:
    async def greet(_call: Call, body: Greet) -> Json:
        raise AssertionError(body)

    with pytest.raises(InvalidInput, match="greet: name: Field required; howOften: Input should be") as caught:
        await adapt(greet)(call({"howOften": "a secret"}))
    assert "a secret" not in str(caught.value)


async def one(_call: Call, _body: dict[str, Any]) -> None:
    """Take a body that is not a model."""


async def two(_call: Call, _body: Greet, _more: int) -> None:
    """Take a parameter too many."""


async def none() -> None:
    """Take nothing."""


@pytest.mark.parametrize("handler", [one, two, none])
def test_a_handler_with_other_parameters_is_refused_where_it_is_declared(handler: Any) -> None:
    replica = Replica(ContractManifest.model_validate({"type": "contract", "identity": IDENTITY, "methods": {"m": {}}}))
    with pytest.raises(InvalidInput, match=f"handler {handler.__name__} must take the call"):
        replica.method(IDENTITY, "m")(handler)


def test_a_response_is_parsed_and_one_of_another_form_is_the_receivers_fault() -> None:
    assert parse_response(Greeting, {"message": "hi"}, "greeter.greet") == Greeting(message="hi")
    with pytest.raises(ResideError, match=r"greeter.greet responded with another form: message: Field required"):
        parse_response(Greeting, {"msg": "a secret"}, "greeter.greet")
    with pytest.raises(ResideError, match="response: Input should be"):
        parse_response(Greeting, "a secret", "greeter.greet")


def test_a_model_is_sent_with_the_names_of_its_aliases() -> None:
    assert dump(Greet(name="Ada", howOften=3)) == {"name": "Ada", "howOften": 3}
    assert dump({"name": "Ada"}) == {"name": "Ada"}
