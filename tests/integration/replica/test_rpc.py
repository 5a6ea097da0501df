"""Calls between replicas over HTTP: authentication, permissions, and errors with their codes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from support.ports import free_port
from support.replicas import GREETING, AlphaDouble, call, endpoint_of, greeting_contract

from reside.jazz import AccountId, now_ms, sign_request
from reside.model.endpoints import INSTANCE_HEADER, rpc_path, signed_path
from reside.model.errors import Conflict, InvalidInput, NotAllowed, NotReady, ResideError
from reside.model.permissions import Grant, PermissionRef
from reside.replica import Call, Replica
from reside.replica.client import call_method

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from support.replicas import Identity

    from reside.jazz import Credentials
    from reside.replica import Context, Json, ReplicaSettings

pytestmark = pytest.mark.anyio


@pytest.fixture
async def greeter(identity: Identity) -> AsyncIterator[Context]:
    async with build_greeter().start(identity.settings) as context:
        yield context


def build_greeter() -> Replica:
    replica = Replica(greeting_contract())

    @replica.method(GREETING, "greet")
    async def greet(call: Call) -> dict[str, Any]:
        room = call.body.get("room")
        permission = "greet" if room is None else "greet:room"
        call.require(permission, room)
        return {"message": f"Hello, {call.body['name']}", "params": call.params(permission, room)}

    @replica.method(GREETING, "whoami")
    async def whoami(call: Call) -> str:
        return call.account

    @replica.method(GREETING, "fail")
    async def fail(call: Call) -> None:
        errors = {"conflict": Conflict, "invalid": InvalidInput, "not-ready": NotReady}
        raise errors.get(call.body["how"], KeyError)("said the handler")

    return replica


async def test_everybody_is_told_the_account_of_a_replica_and_of_no_other(greeter: Context) -> None:
    async with httpx2.AsyncClient(base_url=endpoint_of(greeter), trust_env=False) as http:
        told = await http.get("/replicas/greeter/account")
        assert (told.json(), told.headers["cache-control"]) == ({"account": greeter.node.account_id}, "no-store")
        assert (await http.get("/replicas/alpha/account")).status_code == 404
        assert (await http.post("/replicas/greeter/account")).status_code == 405


async def test_the_caller_is_the_account_that_signed(greeter: Context, client: Credentials) -> None:
    assert await call(greeter, client, "whoami", {}) == client.account_id


async def test_a_method_is_refused_before_the_grant_served_after_it_and_refused_again_after_the_revocation(
    alpha_double: AlphaDouble, identity: Identity, greeter: Context, client: Credentials
) -> None:
    """The key remains in the control block after the revocation; it must not grant anything."""
    ref = PermissionRef(client.account_id, GREETING, "greet")
    with pytest.raises(NotAllowed, match=f"needs the permission greet of {GREETING}"):
        await call(greeter, client, "greet", {"name": "Ada"})
    granted = Grant(granted=True, params={"loud": True})
    await alpha_double.expect(identity, ref, granted)
    await alpha_double.until_current(identity, ref, granted)
    answer = await call(greeter, client, "greet", {"name": "Ada"})
    assert answer == {"message": "Hello, Ada", "params": {"loud": True}}
    await alpha_double.expect(identity, ref, Grant(granted=False))
    await alpha_double.until_current(identity, ref, Grant(granted=False))
    with pytest.raises(NotAllowed):
        await call(greeter, client, "greet", {"name": "Ada"})


async def test_a_permission_is_valid_for_its_instance_and_account_only(
    alpha_double: AlphaDouble, identity: Identity, greeter: Context, client: Credentials
) -> None:
    ref = PermissionRef(client.account_id, GREETING, "greet:room", "blue")
    await alpha_double.expect(identity, ref, Grant(granted=True))
    await alpha_double.until_current(identity, ref, Grant(granted=True))
    assert (await call(greeter, client, "greet", {"name": "Ada", "room": "blue"}))["message"] == "Hello, Ada"
    with pytest.raises(NotAllowed, match="greet:room for red"):
        await call(greeter, client, "greet", {"name": "Ada", "room": "red"})
    with pytest.raises(NotAllowed):
        await call(greeter, await alpha_double.account("other"), "greet", {"name": "Ada", "room": "blue"})


@pytest.mark.parametrize(("how", "kind"), [("conflict", Conflict), ("invalid", InvalidInput), ("not-ready", NotReady)])
async def test_a_handlers_error_reaches_the_caller_as_the_same_class(
    greeter: Context, client: Credentials, how: str, kind: type[ResideError]
) -> None:
    with pytest.raises(kind, match="said the handler"):
        await call(greeter, client, "fail", {"how": how})


async def test_a_handlers_bug_is_an_error_without_its_details(greeter: Context, client: Credentials) -> None:
    with pytest.raises(ResideError, match="failed to handle fail: see its log") as caught:
        await call(greeter, client, "fail", {"how": "bug"})
    assert "said the handler" not in str(caught.value)


async def test_tokens_are_valid_for_one_request_to_one_receiver(
    alpha_double: AlphaDouble, greeter: Context, client: Credentials
) -> None:
    path = rpc_path("greeter", GREETING, "whoami")
    stranger = await alpha_double.account("stranger")
    async with httpx2.AsyncClient(trust_env=False) as http:
        instance = await instance_of(http, endpoint_of(greeter))

    def token(receiver: Any = greeter.node.account_id, body: bytes = b"{}", path: str = path) -> dict[str, str]:
        path = signed_path(path, instance)
        signed = sign_request(client, receiver=receiver, method="POST", path=path, body=body, now_ms=now_ms())
        return {"authorization": signed, INSTANCE_HEADER: instance}

    async with httpx2.AsyncClient(base_url=endpoint_of(greeter), trust_env=False) as http:
        once = token()
        assert (await http.post(path, content=b"{}", headers=once)).status_code == 200
        refused = {
            "reused": await http.post(path, content=b"{}", headers=once),
            "no token": await http.post(path, content=b"{}", headers={INSTANCE_HEADER: instance}),
            "other receiver": await http.post(path, content=b"{}", headers=token(stranger.account_id)),
            "other body": await http.post(path, content=b'{"a":1}', headers=token()),
            "other path": await http.post(path, content=b"{}", headers=token(path="/elsewhere")),
        }
    assert {name: answer.status_code for name, answer in refused.items()} == dict.fromkeys(refused, 401)
    assert {answer.json()["error"]["code"] for answer in refused.values()} == {"unauthenticated"}


async def test_a_token_that_one_pod_has_accepted_is_refused_by_every_other_pod(
    identity: Identity, client: Credentials
) -> None:
    """Whoever has read a call on its way can send it to any pod of the replica."""
    path = rpc_path("greeter", GREETING, "whoami")
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))
        pods = [f"http://127.0.0.1:{port}" for port in (free_port(), free_port(), free_port())]
        for pod in pods:
            placed = identity.settings.model_copy(update={"listen_port": int(pod.rpartition(":")[2])})
            await stack.enter_async_context(build_greeter().start(placed))
        first, *others = [await instance_of(http, pod) for pod in pods]
        receiver = AccountId(identity.settings.account_id)
        token = sign_request(
            client, receiver=receiver, method="POST", path=signed_path(path, first), body=b"{}", now_ms=now_ms()
        )

        async def post(pod: str, instance: str) -> tuple[int, str | None]:
            headers = {"authorization": token, INSTANCE_HEADER: instance}
            answer = await http.post(f"{pod}{path}", content=b"{}", headers=headers)
            return answer.status_code, None if answer.is_success else answer.json()["error"]["code"]

        assert await post(pods[0], first) == (200, None)
        for pod, instance in zip(pods[1:], others, strict=True):
            assert await post(pod, first) == (421, "other-instance")
            assert await post(pod, instance) == (401, "unauthenticated")


async def instance_of(http: httpx2.AsyncClient, endpoint: str) -> str:
    """Return the id of the process that serves at an address."""
    answer = await http.post(f"{endpoint}{rpc_path('greeter', GREETING, 'whoami')}")
    assert answer.status_code == 421
    return str(answer.json()["instance"])


async def test_bad_requests_are_refused_with_the_reason(greeter: Context, client: Credentials) -> None:
    async def post(path: str, body: bytes) -> tuple[int, str]:
        receiver = greeter.node.account_id
        async with httpx2.AsyncClient(base_url=endpoint_of(greeter), trust_env=False) as http:
            instance = await instance_of(http, endpoint_of(greeter))
            signed = sign_request(
                client, receiver=receiver, method="POST", path=signed_path(path, instance), body=body, now_ms=now_ms()
            )
            headers = {"authorization": signed, INSTANCE_HEADER: instance}
            answer = await http.post(path, content=body, headers=headers)
        return answer.status_code, answer.json()["error"]["message"]

    whoami = rpc_path("greeter", GREETING, "whoami")
    assert await post(whoami, b"[]") == (400, "the body is not a JSON object: send one, e.g. {}")
    assert await post(whoami, b"{") == (400, "the body is not JSON: send a JSON object")
    assert (await post(whoami, b" " * (1 << 20) + b"{}"))[0] == 400
    assert await post(rpc_path("greeter", GREETING, "sing"), b"{}") == (
        404,
        f"greeter has no method sing of {GREETING}",
    )
    assert await post(rpc_path("other", GREETING, "whoami"), b"{}") == (404, "this is replica greeter, not other")


async def test_a_missing_receiver_is_not_ready(
    alpha_double: AlphaDouble, client: Credentials, identity: Identity
) -> None:
    async with build_greeter().start(identity.settings) as gone:
        pass
    endpoint = gone.settings.internal_endpoint
    assert endpoint is None
    gone.health.started = False
    with pytest.raises(NotReady, match="can't be reached"):
        await call(gone, client, "whoami", {}, within_s=0.5)


@pytest.fixture
def placed(identity: Identity) -> ReplicaSettings:
    """Return the greeter's settings with a port that it keeps when it restarts."""
    port = free_port()
    return identity.settings.model_copy(update={"listen_port": port, "internal_endpoint": f"http://127.0.0.1:{port}"})


async def whoami(
    placed: ReplicaSettings, client: Credentials, on_request: Callable[[httpx2.Request], Awaitable[None]]
) -> Json:
    """Call the greeter; `on_request` runs after each token is created and before the call is sent."""
    async with httpx2.AsyncClient(trust_env=False, event_hooks={"request": [on_request]}) as http:
        return await call_method(
            http,
            client,
            endpoint=str(placed.internal_endpoint),
            receiver=AccountId(placed.account_id),
            path=rpc_path("greeter", GREETING, "whoami"),
            body={},
        )


async def test_a_receiver_that_restarts_between_the_token_and_the_call_is_called_with_a_new_token(
    placed: ReplicaSettings, client: Credentials
) -> None:
    """The receiver refuses what was signed for its predecessor, since it has lost the list of used tokens."""
    tokens: list[str] = []
    async with AsyncExitStack() as second, AsyncExitStack() as first:
        await first.enter_async_context(build_greeter().start(placed))

        async def restart(request: httpx2.Request) -> None:
            tokens.append(request.headers["authorization"])
            if len(tokens) == 1:
                await first.aclose()
                await second.enter_async_context(build_greeter().start(placed))

        assert await whoami(placed, client, restart) == client.account_id
    assert len(set(tokens)) == 2


async def test_a_call_waits_for_an_unreachable_receiver(placed: ReplicaSettings, client: Credentials) -> None:
    """First there is no listener; then the receiver listens, but does not serve yet."""
    tried = asyncio.Event()

    async def note(_: httpx2.Request) -> None:
        tried.set()

    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        calling = group.create_task(whoami(placed, client, note))
        await tried.wait()
        await stack.enter_async_context(build_greeter().start(placed))
        assert await calling == client.account_id


async def test_a_required_peer_is_found_by_key_and_by_contract_and_called(
    alpha_double: AlphaDouble, identity: Identity, greeter: Context
) -> None:
    caller = await alpha_double.identity("caller")
    ref = PermissionRef(caller.credentials.account_id, GREETING, "greet")
    await alpha_double.expect(identity, ref, Grant(granted=True))
    await alpha_double.until_current(identity, ref, Grant(granted=True))
    caller.rcb.set_requirements({"greeting": [identity.credentials.account_id]})
    await alpha_double.node.flush()
    async with Replica().start(caller.settings, serve=False) as context:
        by_key, by_contract = await context.peers("greeting"), await context.peers(GREETING)
        assert by_key == by_contract
        assert [peer.name for peer in by_key] == ["greeter"]
        assert (await by_key[0].call("greet", {"name": "Bob"}))["message"] == "Hello, Bob"
        assert await context.peers("nothing") == []
        assert await context.peers("registry.reside.internal/other.v1") == []
        with pytest.raises(NotReady, match="publishes no data"):
            await by_key[0].data()


async def test_a_peer_that_never_started_is_not_ready(alpha_double: AlphaDouble) -> None:
    caller, absent = await alpha_double.identity("caller"), await alpha_double.identity("absent")
    caller.rcb.set_requirements({"greeting": [absent.credentials.account_id]})
    await alpha_double.node.flush()
    async with Replica().start(caller.settings, serve=False) as context:
        for wanted in ("greeting", GREETING):
            with pytest.raises(NotReady, match="has not started"):
                await context.peers(wanted)
