"""Typed methods: pydantic models as body and response of a call, on both sides.

    @greeter.method(CONTRACT.identity, "greet")
    async def greet(call: Call, body: Greet) -> Greeting: ...

    greeting = await peer.call("greet", Greet(name="Ada"), returns=Greeting)

A body that does not match its model is the caller's fault, and a response that does not is the receiver's. Messages
name members, never their values.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from pydantic import BaseModel, ValidationError

from reside.common.validation import describe_faults
from reside.model.errors import InvalidInput, ResideError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reside.jazz import Json
    from reside.replica.call import Call
    from reside.replica.declaration import MethodHandler

Model = TypeVar("Model", bound=BaseModel)


def adapt(handler: Callable[..., Awaitable[Any]]) -> MethodHandler:
    """Return the handler of a method as one that takes the call alone and returns JSON.

    Args:
        handler: takes the call, and as a second parameter a pydantic model if it has one; returns JSON or a model.

    Raises:
        InvalidInput: the second parameter is not annotated with a pydantic model, or there are more parameters.
    """
    model = _body_model(handler)

    async def handle(call: Call) -> Json:
        result = await (handler(call) if model is None else handler(call, parse_body(model, call)))
        return dump(result)

    return handle


def parse_body(model: type[Model], call: Call) -> Model:
    """Return the validated body of a call.

    Raises:
        InvalidInput: it is invalid; the message names the method and the members.
    """
    try:
        return model.model_validate(call.body)
    except ValidationError as error:
        raise InvalidInput(f"{call.method}: {describe_faults(error, 'body')}") from None


def parse_response(model: type[Model], answer: Json, source: str) -> Model:
    """Return the validated response of a call.

    Raises:
        ResideError: it is invalid; the message names the receiver and the members.
    """
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise ResideError(f"{source} responded with another form: {describe_faults(error, 'response')}") from None


def dump(value: Any) -> Any:
    """Return a model as JSON, with the names of its aliases; anything else as it is."""
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value


def _body_model(handler: Callable[..., Awaitable[Any]]) -> type[BaseModel] | None:
    parameters = list(inspect.signature(handler).parameters.values())
    if len(parameters) == 1:
        return None
    model = _resolved(handler, parameters[1].annotation) if len(parameters) == 2 else None  # noqa: PLR2004
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        name = getattr(handler, "__name__", repr(handler))
        raise InvalidInput(
            f"handler {name} must take the call, and may take a body, annotated with a pydantic model of its module"
        )
    return model


def _resolved(handler: Callable[..., Awaitable[Any]], annotation: Any) -> Any:
    """Return the type that an annotation names; the other annotations may name what only type checkers import."""
    known = getattr(handler, "__globals__", {})
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"body": annotation}), known).get("body")
    except NameError:
        return None
