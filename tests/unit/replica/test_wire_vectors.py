"""The test vectors of docs/wire.md: the code of replicas computes what the files say."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest
from support.wire_vectors import FILES, FOLDER, load, text_of

from reside.jazz import AccountId, Credentials, RequestVerifier, TokenRefused, sign_request
from reside.jazz.tokens.shared import shared_key
from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.header import parse_header
from reside.locks import LockService
from reside.locks.etcd import decode
from reside.model.errors import NotReady, ResideError, from_wire
from reside.replica import Replica
from reside.replica.app import build_app
from reside.replica.client import call_method
from reside.replica.control_block import ControlBlock, parse_permission
from reside.replica.grants import next_steps
from reside.replica.health import Health
from reside.replica.profile import parse_profile
from reside.replica.rpc import RpcServer
from reside.testing.locks import MemoryEtcd

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import CoMap, Group
    from reside.replica.call import Call

pytestmark = pytest.mark.anyio

CASES = load("tokens")["cases"]
ENTRIES = load("control_block")["entries"]
RESPONSES = load("rpc")["responses"]
STATUSES = load("rpc")["statuses"]
PROFILES = load("profiles")["profiles"]


def named(cases: list[dict[str, Any]]) -> Any:
    """Return a parametrization by the names of cases."""
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_vectors_is_what_the_tool_writes(name: str) -> None:
    """If this fails, the wire has changed: replicas of other releases and languages would not understand it."""
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == text_of(name)


def test_accounts_follow_from_their_secrets() -> None:
    for account in load("tokens")["accounts"].values():
        assert Credentials.from_secret(account["agentSecret"]).account_id == account["accountId"]
        assert Agent.from_secret(account["agentSecret"]).agent_id == account["agentId"]


def test_a_token_is_signed_as_the_vectors_say() -> None:
    vectors = load("tokens")
    assert _made(receiver_agent_id=None) == vectors["token"]["header"]


def test_a_shared_token_is_made_as_the_vectors_say() -> None:
    """Both accounts compute the same key, each from its own secret and the other's agent."""
    vectors = load("tokens")
    caller, receiver = (
        Credentials.from_secret(vectors["accounts"][name]["agentSecret"]) for name in ("caller", "receiver")
    )
    assert shared_key(caller._agent, receiver.agent_id).hex() == vectors["shared"]["key"]
    assert shared_key(receiver._agent, caller.agent_id).hex() == vectors["shared"]["key"]
    assert _made(receiver_agent_id=receiver.agent_id) == vectors["shared"]["header"]


def _made(*, receiver_agent_id: str | None) -> str:
    """Return the header of the request of the vectors."""
    vectors = load("tokens")
    request = vectors["request"]
    return sign_request(
        Credentials.from_secret(vectors["accounts"]["caller"]["agentSecret"]),
        receiver=vectors["accounts"]["receiver"]["accountId"],
        receiver_agent_id=receiver_agent_id,
        method=request["method"],
        path=request["path"],
        body=request["body"].encode(),
        nonce=request["nonce"],
        now_ms=request["madeAt"],
    )


@named(CASES)
async def test_a_receiver_accepts_and_refuses_tokens_as_the_vectors_say(case: dict[str, Any]) -> None:
    accounts = load("tokens")["accounts"]
    receiver = Credentials.from_secret(accounts["receiver"]["agentSecret"])
    verifier = RequestVerifier(receiver.account_id, clock=lambda: case["now"], since_ms=0, credentials=receiver)
    request = {"method": case["method"], "path": case["path"], "body": case["body"].encode()}
    for _ in range(case["before"]):
        await verifier.verify(case.get("beforeHeader", case["header"]), **request)
    if case["result"] == "accepted":
        assert await verifier.verify(case["header"], **request) == accounts["caller"]["accountId"]
        return
    with pytest.raises(TokenRefused) as refused:
        await verifier.verify(case["header"], **request)
    assert refused.value.reason == case["result"]


async def test_locks_have_the_keys_of_the_vectors() -> None:
    vectors = load("locks")
    keys: list[str] = []
    etcd = MemoryEtcd()

    async def note(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/v3/kv/txn":
            keys.append(decode(json.loads(request.content)["compare"][0]["key"]))
        return await etcd.handle_async_request(request)

    async with LockService(["http://etcd"], space=vectors["account"], transport=httpx2.MockTransport(note)) as locks:
        for lock in vectors["keys"]:
            async with locks.lock(lock["lock"]):
                pass
    assert keys == [lock["key"] for lock in vectors["keys"]]


@pytest.mark.parametrize("vector", load("permissions")["keys"], ids=lambda vector: vector["permission"])
def test_the_entry_of_a_permission_has_the_id_of_the_vectors(vector: dict[str, Any]) -> None:
    header = {
        "type": "comap",
        "ruleset": {"type": "ownedByGroup", "group": load("permissions")["group"]},
        "meta": None,
        "uniqueness": vector["entryName"],
    }
    assert parse_header(header).co_id == vector["entryId"]


@named(ENTRIES)
def test_an_entry_of_a_control_block_means_what_the_vectors_say(case: dict[str, Any]) -> None:
    found = parse_permission(case["key"], case["members"])
    assert (found is not None) == case["valid"]
    assert (found is not None and found.in_force) == case["inForce"]
    entries = [] if found is None else [found]
    for member, is_implemented in (("step", True), ("stepIfNotImplemented", False)):
        acts = [step.act for step in next_steps(entries, lambda _, answer=is_implemented: answer)]
        assert acts == [case[member]] * (case[member] is not None)


def test_the_members_of_a_control_block_are_read_as_the_vectors_say() -> None:
    vectors = load("control_block")
    root = cast("CoMap", vectors["block"])
    block = ControlBlock(cast("Any", None), root, cast("CoMap", {}))
    assert (block.number, block.name) == (7, "greeter")
    assert block.requirements() == vectors["requirements"]
    assert (block.has_external_endpoint, block.external_endpoint) == (True, None)
    assert block.lock_access == vectors["block"]["lockAccess"]


@named(RESPONSES)
async def test_a_caller_reads_responses_as_the_vectors_say(case: dict[str, Any]) -> None:
    sent: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers["reside-instance"])
        status, body = (200, "done") if len(sent) > 1 else (case["status"], case["body"])
        return httpx2.Response(status, text=json.dumps(body))

    result, code = await _called(answer)
    assert (len(sent) > 1) == case["sentAgain"]
    if case["sentAgain"]:
        assert (result, sent[1]) == ("done", case.get("instance", ""))
    else:
        assert (result, code) == (case.get("value"), case.get("code"))


async def _called(answer: Callable[[httpx2.Request], httpx2.Response]) -> tuple[Any, str | None]:
    vectors = load("rpc")["paths"]
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        try:
            body = await call_method(
                http,
                Credentials.generate(),
                endpoint="http://greeter",
                receiver=AccountId("co_zReceiver"),
                path=vectors["rpc"],
                body={},
            )
        except ResideError as error:
            return None, error.code
        return body, None


@pytest.mark.parametrize("code", STATUSES)
async def test_an_error_has_the_status_of_the_vectors(code: str) -> None:
    vectors = load("rpc")["paths"]
    replica = Replica()

    async def fail(_: Call) -> None:
        raise from_wire(code, "said the handler")

    if code != "not-found":
        replica.declaration.methods[vectors["contract"], vectors["method"]] = fail
    server = RpcServer("greeter", replica.declaration)
    if code != "not-serving":
        server.open(cast("Any", SimpleNamespace()), cast("Any", _Verifier(accepts=code != "unauthenticated")))
    transport = httpx2.ASGITransport(build_app(Health(), server))
    async with httpx2.AsyncClient(transport=transport, base_url="http://greeter") as http:
        headers = {vectors["instanceHeader"]: server.instance}
        response = await http.post(vectors["rpc"], json={}, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (STATUSES[code], code)


class _Verifier:
    """Accepts or refuses every token."""

    def __init__(self, *, accepts: bool) -> None:
        self._accepts = accepts

    async def verify(self, _: str | None, **__: Any) -> AccountId:
        """Return an account, or refuse the token."""
        if not self._accepts:
            raise TokenRefused("missing", "the request has no Authorization header")
        return AccountId("co_zCaller")


@named(PROFILES)
def test_a_profile_is_read_as_the_vectors_say(case: dict[str, Any]) -> None:
    group = cast("Group", None)
    if case["profile"] is None:
        with pytest.raises(NotReady):
            parse_profile(AccountId("co_zGreeter"), case["members"], group)
        return
    found = parse_profile(AccountId("co_zGreeter"), case["members"], group)
    assert case["profile"] == {
        "name": found.name,
        "replicaId": found.replica_id,
        "endpoints": found.endpoints,
        "contracts": found.contracts,
    }
