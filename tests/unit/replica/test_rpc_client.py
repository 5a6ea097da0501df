"""The RPC client: what it tries again, and what it makes of answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from reside.jazz import AccountId, Credentials
from reside.model.errors import Conflict, NotAllowed, NotReady, ResideError
from reside.replica.client import call_method, rpc_path

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

PATH = rpc_path("greeter", "r.example/c.v1", "greet")


async def call(answer: Callable[[httpx.Request], httpx.Response]) -> Any:
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        return await call_method(
            http,
            Credentials.generate(),
            endpoint="http://greeter/",
            receiver=AccountId("co_zReceiver"),
            path=PATH,
            body={"name": "Ada"},
        )


async def test_the_body_is_sent_as_json_to_the_methods_path() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url == "http://greeter/replicas/greeter/rpc/r.example/c.v1/greet"
        return httpx.Response(200, json=json.loads(request.content))

    assert await call(answer) == {"name": "Ada"}


async def test_a_connection_that_can_not_be_made_is_tried_again_with_a_token_of_its_own() -> None:
    """A token is good for one request only."""
    tokens: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        tokens.append(request.headers["authorization"])
        if len(tokens) < 3:
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response(200, json="done")

    assert await call(answer) == "done"
    assert len(set(tokens)) == 3


async def test_a_call_that_may_have_arrived_is_not_repeated() -> None:
    tries = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        raise httpx.ReadError("reset", request=request)

    with pytest.raises(NotReady, match="can't be reached: ReadError"):
        await call(answer)
    assert tries == 1


@pytest.mark.parametrize(
    ("code", "kind"), [("not-allowed", NotAllowed), ("conflict", Conflict), ("never-heard-of", ResideError)]
)
async def test_a_named_error_becomes_its_class(code: str, kind: type[ResideError]) -> None:
    body = {"error": {"code": code, "message": "said the peer"}}
    with pytest.raises(kind, match="said the peer") as caught:
        await call(lambda _: httpx.Response(400, json=body))
    assert type(caught.value) is kind


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_an_ingress_without_a_pod_behind_it_is_not_ready(status: int) -> None:
    with pytest.raises(NotReady, match=f"HTTP {status}"):
        await call(lambda _: httpx.Response(status, text="<html>"))


async def test_a_success_that_is_no_json_is_not_taken_for_an_answer() -> None:
    """As that of a page which a proxy shows instead."""
    with pytest.raises(ResideError, match="200 with no JSON"):
        await call(lambda _: httpx.Response(200, text="<html>welcome</html>"))


async def test_an_answer_of_somebody_else_is_told_as_such() -> None:
    with pytest.raises(ResideError, match="answered HTTP 404 without an error of ReSide"):
        await call(lambda _: httpx.Response(404, text="<html>"))
