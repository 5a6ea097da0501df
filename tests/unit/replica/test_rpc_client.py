"""The RPC client: what it retries, and how it reads responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import stamina

from reside.jazz import AccountId, Credentials
from reside.model.endpoints import rpc_path
from reside.model.errors import AnswerLost, Conflict, NotAllowed, NotReady, ResideError
from reside.replica import Replica
from reside.replica.app import build_app
from reside.replica.client import Process, call_method
from reside.replica.health import Health
from reside.replica.rpc import RpcServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import Json

pytestmark = pytest.mark.anyio

PATH = rpc_path("greeter", "r.example/c.v1", "greet")


async def call(answer: Callable[[httpx2.Request], httpx2.Response], **options: Any) -> Any:
    return await call_through(httpx2.MockTransport(answer), **options)


async def call_through(transport: httpx2.AsyncBaseTransport, **options: Any) -> Json:
    async with httpx2.AsyncClient(transport=transport) as http:
        return await call_method(
            http,
            Credentials.generate(),
            endpoint="http://greeter/",
            path=PATH,
            body={"name": "Ada"},
            **({"receiver": AccountId("co_zReceiver")} | options),
        )


class Receiver:
    """Returns the responses in order and repeats the last one; records tokens and processes."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers = list(answers)
        self.tokens: list[str] = []
        self.instances: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Return the next response."""
        self.tokens.append(request.headers["authorization"])
        self.instances.append(request.headers["reside-instance"])
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusal(status: int, code: str) -> httpx2.Response:
    """Return an error of ReSide on the wire."""
    return httpx2.Response(status, json={"error": {"code": code, "message": "said the peer"}})


async def test_the_body_is_sent_as_json_to_the_methods_path() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.url == "http://greeter/replicas/greeter/rpc/r.example/c.v1/greet"
        return httpx2.Response(200, json=json.loads(request.content))

    assert await call(answer) == {"name": "Ada"}


@pytest.mark.parametrize(
    "refused",
    [
        httpx2.ConnectError("refused"),
        httpx2.ConnectTimeout("no answer to a SYN"),
        refusal(503, "not-serving"),
    ],
    ids=["refused connection", "connect timeout", "not serving"],
)
async def test_a_call_that_was_not_handled_is_retried_with_a_new_token(
    refused: httpx2.Response | Exception,
) -> None:
    """A token is valid for one request only."""
    receiver = Receiver(refused, refused, httpx2.Response(200, json="done"))
    with stamina.set_testing(True, attempts=3):  # without the pauses
        assert await call(receiver) == "done"
    assert len(set(receiver.tokens)) == 3


def misdirected(instance: object) -> httpx2.Response:
    """Return the refusal of another process."""
    error = {"code": "other-instance", "message": "said the peer"}
    return httpx2.Response(421, json={"error": error, "instance": instance})


async def test_a_call_that_reaches_another_process_is_signed_for_it_and_the_next_call_begins_with_it() -> None:
    receiver = Receiver(misdirected("first"), misdirected("second"), httpx2.Response(200, json="done"))
    processes: dict[AccountId, Process] = {}
    assert await call(receiver, processes=processes) == "done"
    assert receiver.instances == ["", "first", "second"]
    assert len(set(receiver.tokens)) == 3
    assert await call(receiver, processes=processes) == "done"
    assert receiver.instances[3:] == ["second"]


async def test_a_code_that_is_refused_is_followed_by_a_signature() -> None:
    """Anybody on the way can add the agent, which is public, to the refusal of a receiver that knows no codes."""
    known, refused = Credentials.generate(), {"error": {"code": "unauthenticated", "message": "it is malformed"}}
    named = {
        "error": {"code": "other-instance", "message": "said the peer"},
        "instance": "old",
        "agent": known.agent_id,
    }
    receiver = Receiver(
        httpx2.Response(421, json=named), httpx2.Response(401, json=refused), httpx2.Response(200, json="done")
    )
    processes: dict[AccountId, Process] = {}
    assert await call(receiver, receiver=known.account_id, processes=processes) == "done"
    assert [token.partition(" ")[0] for token in receiver.tokens] == ["Jazz-Bound", "Jazz-Shared", "Jazz-Bound"]
    assert processes == {known.account_id: Process("old")}


async def test_a_signature_that_is_refused_is_not_repeated() -> None:
    receiver = Receiver(httpx2.Response(401, json={"error": {"code": "unauthenticated", "message": "it is expired"}}))
    with pytest.raises(ResideError, match="it is expired"):
        await call(receiver)
    assert len(receiver.tokens) == 1


async def test_a_receiver_whose_process_changes_at_each_attempt_is_not_asked_for_ever() -> None:
    receiver = Receiver(misdirected("again"))
    with pytest.raises(NotReady, match="another process at each attempt"), stamina.set_testing(True, attempts=1):
        await call(receiver)
    assert len(receiver.tokens) == 32


@pytest.mark.parametrize("instance", [None, 7, "two\r\nx-header: lines", "x" * 65])
async def test_a_receiver_that_does_not_name_its_process_is_refused(instance: object) -> None:
    with pytest.raises(ResideError, match="http://greeter/ does not name its process"):
        await call(Receiver(misdirected(instance)))


@pytest.mark.parametrize(
    ("lost", "name"),
    [
        (httpx2.ReadError("reset"), "ReadError"),
        (httpx2.ReadTimeout("no answer"), "ReadTimeout"),
        (httpx2.WriteError("reset"), "WriteError"),
        (httpx2.RemoteProtocolError("disconnected"), "RemoteProtocolError"),
    ],
)
async def test_a_call_that_may_have_been_handled_is_not_repeated(lost: Exception, name: str) -> None:
    receiver = Receiver(lost)
    with pytest.raises(AnswerLost, match=f"http://greeter/ did not respond: {name} .*may have been carried out"):
        await call(receiver)
    assert len(receiver.tokens) == 1


@pytest.mark.parametrize(
    "answer",
    [
        refusal(503, "not-ready"),
        refusal(500, "error"),
        refusal(500, "not-serving"),
        httpx2.Response(503, text="<html>"),
        httpx2.Response(502, text="<html>"),
    ],
    ids=["not ready", "failed", "not serving with another status", "503 of a proxy", "502 of a proxy"],
)
async def test_a_response_that_may_come_from_a_handler_or_a_proxy_is_not_retried(answer: httpx2.Response) -> None:
    receiver = Receiver(answer)
    with pytest.raises(ResideError):
        await call(receiver)
    assert len(receiver.tokens) == 1


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (httpx2.ConnectError("refused"), "http://greeter/ can't be reached: ConnectError refused"),
        (refusal(503, "not-serving"), "said the peer"),
    ],
)
async def test_after_the_deadline_the_caller_gets_the_last_refusal(
    refused: httpx2.Response | Exception, message: str
) -> None:
    """As plain NotReady: a handler that raises it must not claim to its own caller that nothing was handled."""
    receiver = Receiver(refused)
    with pytest.raises(NotReady, match=f"^{message}$") as caught:
        await call(receiver, within_s=0.3)
    assert (type(caught.value), caught.value.code) == (NotReady, "not-ready")
    assert len(receiver.tokens) > 1


async def test_a_server_that_does_not_serve_yet_refuses_so_that_the_call_is_retried() -> None:
    server = build_app(Health(), RpcServer("greeter", Replica().declaration))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(server), base_url="http://greeter") as http:
        answer = await http.post(PATH)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not-serving")
    with pytest.raises(NotReady, match="greeter is starting"):
        await call_through(httpx2.ASGITransport(server), within_s=0.3)


@pytest.mark.parametrize(
    ("code", "kind"), [("not-allowed", NotAllowed), ("conflict", Conflict), ("never-heard-of", ResideError)]
)
async def test_a_named_error_becomes_its_class(code: str, kind: type[ResideError]) -> None:
    body = {"error": {"code": code, "message": "said the peer"}}
    with pytest.raises(kind, match="said the peer") as caught:
        await call(lambda _: httpx2.Response(400, json=body))
    assert type(caught.value) is kind


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_an_ingress_without_a_pod_behind_it_is_not_ready(status: int) -> None:
    with pytest.raises(NotReady, match=f"HTTP {status}"):
        await call(lambda _: httpx2.Response(status, text="<html>"))


async def test_a_success_without_json_is_not_a_response() -> None:
    """For example the page of a proxy."""
    with pytest.raises(ResideError, match="HTTP 200, but without JSON"):
        await call(lambda _: httpx2.Response(200, text="<html>welcome</html>"))


async def test_a_response_of_another_program_is_reported_as_such() -> None:
    with pytest.raises(ResideError, match="responded with HTTP 404, but without a ReSide error"):
        await call(lambda _: httpx2.Response(404, text="<html>"))
