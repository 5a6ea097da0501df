"""Servers that require a proof of an account in the address of each connection."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from interop.gate.conftest import metrics
from support.eventually import eventually
from support.jazz_nodes import until
from support.jazz_server import JazzServer, jazz_server
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from reside.jazz import Credentials, JazzUnavailable, Node, now_ms
from reside.jazz.sync import proven_address
from reside.jazz.wire.crypto import Agent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def proving() -> Iterator[JazzServer]:
    """Yield a running server that requires proofs."""
    with jazz_server(PROOF="required", PROOF_HOSTS="jazz.example:4200, 127.0.0.1") as server:
        yield server


async def test_a_node_that_proves_its_account_connects_and_reconnects() -> None:
    one, other = Credentials.generate(), Credentials.generate()
    with jazz_server(PROOF="required", PROOF_HOSTS="127.0.0.1") as server:
        async with Node(server.url, one, prove_account=True) as node:
            await node.register("one")
            group = node.create_group()
            await group.add_member("everyone", "reader")
            value = group.create_map({"x": 1})
            await node.flush()
            server.stop()
            server.start()
            value.set("x", 2)
            await node.flush()
            async with Node(server.url, other, prove_account=True) as reader:
                await reader.register("other")
                await until(await reader.load_map(value.id), {"x": 2})
        accounts = [json.loads(line).get("account") for line in server.log.splitlines() if '"connected"' in line]
    assert accounts == [one.account_id, one.account_id, other.account_id]


async def test_a_node_that_proves_nothing_is_refused(proving: JazzServer) -> None:
    with pytest.raises(JazzUnavailable, match="HTTP 401"):
        async with Node(proving.url, Credentials.generate(), connect_timeout=3):
            pass
    assert "the proof is missing" in proving.log


def forged(url: str, **members: Any) -> str:
    """Return an address with a proof that differs in some members from a valid one."""
    agent = Agent.from_secret(Credentials.generate().agent_secret)
    other = Credentials.generate()
    address = proven_address(members.pop("url", url), agent, other.account_id, now_ms())
    token = address.partition("?proof=")[2]
    fields = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    for place, value in members.items():
        fields[int(place.removeprefix("at"))] = value
    return f"{url}?proof={base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()}"


def proof_of(url: str, *, late: int = 0, host: str | None = None) -> str:
    """Return an address of the server with a proof for a host, or of another time."""
    credentials = Credentials.generate()
    agent = Agent.from_secret(credentials.agent_secret)
    address = proven_address(host or url, agent, credentials.account_id, now_ms() - late)
    return f"{url}?{address.partition('?')[2]}"


def damaged(url: str) -> str:
    """Return an address with a proof whose signature is that of another statement."""
    one, other = proof_of(url), proof_of(url)
    fields = [json.loads(base64.urlsafe_b64decode(each.partition("proof=")[2] + "==")) for each in (one, other)]
    mixed = [*fields[0][:4], fields[1][4]]
    return f"{url}?proof={base64.urlsafe_b64encode(json.dumps(mixed).encode()).decode()}"


REFUSED: dict[str, tuple[Callable[[str], str], str]] = {
    "nothing": (lambda url: url, "the proof is missing"),
    "no JSON": (lambda url: f"{url}?proof=%00", "the proof is malformed"),
    "no list": (lambda url: f"{url}?proof=NQ", "the proof is malformed"),
    "too long": (lambda url: f"{url}?proof={'N' * 5000}", "the proof is malformed"),
    "an agent that is a list": (lambda url: forged(url, at1=["x"]), "the proof is malformed"),
    "an unusable key": (lambda url: forged(url, at1="sealer_z1/signer_z1"), "the proof is malformed"),
    "no signature": (lambda url: forged(url, at4=None), "the proof is malformed"),
    "a time that is a text": (lambda url: forged(url, at2="now"), "the proof is malformed"),
    "an old proof": (lambda url: proof_of(url, late=61_000), "the proof is expired"),
    "a future proof": (lambda url: proof_of(url, late=-65_000), "the proof is expired"),
    "another host": (lambda url: proof_of(url, host="ws://evil.example:4200"), "for another host"),
    "another port of a host with a port": (lambda url: proof_of(url, host="ws://jazz.example:1"), "for another host"),
    "the agent of another account": (forged, "the agent of another account"),
    "another statement's signature": (damaged, "the signature of the proof does not verify"),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_an_invalid_proof_is_refused(kind: str, proving: JazzServer) -> None:
    make, reason = REFUSED[kind]
    address = make(proving.url)
    with pytest.raises(InvalidStatus) as refused:
        await connect(address)
    assert refused.value.response.status_code == 401
    await eventually("the refusal in the log", lambda: proving.log.splitlines()[-1], lambda line: reason in line)
    assert any(reason in name for name in metrics(proving))


async def test_a_proof_can_be_used_again_within_its_minute(proving: JazzServer) -> None:
    address = proof_of(proving.url, host="ws://jazz.example:4200")
    for _ in range(2):
        async with connect(address):
            pass


async def test_no_proof_reaches_a_log(proving: JazzServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    credentials = Credentials.generate()
    async with Node(proving.url, credentials, prove_account=True) as node:
        await node.register("one")
    with pytest.raises(JazzUnavailable) as unavailable:
        async with Node("ws://127.0.0.1:1", credentials, prove_account=True, connect_timeout=0.1):
            pass
    for text in (proving.log, caplog.text, str(unavailable.value)):
        assert "proof=" not in text
