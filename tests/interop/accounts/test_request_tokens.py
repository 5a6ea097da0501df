"""Request tokens of jazz-tools: created in Python and verified by `authenticateRequest`, and vice versa."""

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer

from reside.jazz import Credentials, Node, TokenRefused, now_ms, sign_jazz_token, sign_request, verify_jazz_token

pytestmark = pytest.mark.anyio

MINUTE_MS = 60_000


def _bound(caller: Credentials) -> str:
    return sign_request(caller, receiver=caller.account_id, method="GET", path="/", body=b"", now_ms=now_ms())


@pytest.fixture
async def worker(jazz: JazzServer, tools: JavaScript) -> Credentials:
    """Return an account, created here, that jazz-tools' `startWorker` has logged in as `worker`."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("worker")
    login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
    assert await tools("login", actor="worker", url=jazz.url, **login) == {"id": credentials.account_id}
    return credentials


async def test_javascript_accepts_a_token_created_in_python(
    jazz: JazzServer, tools: JavaScript, worker: Credentials
) -> None:
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as caller:
        await caller.register("caller")
    token = sign_jazz_token(credentials, now_ms=now_ms())
    answer = await tools("authenticate", actor="worker", header=token)
    assert answer == {"account": credentials.account_id, "error": None}

    old = sign_jazz_token(credentials, now_ms=now_ms() - MINUTE_MS - 1)
    assert (await tools("authenticate", actor="worker", header=old))["error"] == "Token expired"
    signature, account, created = token.split("~")
    forged = f"{signature}~{account}~{int(created) + 1}"
    assert (await tools("authenticate", actor="worker", header=forged))["error"] == "Invalid signature"


async def test_python_accepts_a_token_created_in_javascript(
    tools: JavaScript, worker: Credentials, nodes: Nodes
) -> None:
    receiver = await nodes("receiver")
    header = await tools("token", actor="worker")
    assert await verify_jazz_token(receiver, header, now_ms=now_ms()) == worker.account_id
    at = now_ms()
    for shift, reason in ((-MINUTE_MS - 1, "expired"), (MINUTE_MS + 1, "future")):
        other = await tools("token", actor="worker", at=at + shift)
        with pytest.raises(TokenRefused) as refused:
            await verify_jazz_token(receiver, other, now_ms=at)
        assert refused.value.reason == reason
    with pytest.raises(TokenRefused, match="form Jazz …"):
        await verify_jazz_token(receiver, _bound(worker), now_ms=at)
    unknown = Credentials.generate()
    with pytest.raises(TokenRefused) as refused:
        await verify_jazz_token(receiver, sign_jazz_token(unknown, now_ms=at), now_ms=at)
    assert refused.value.reason == "account"
    assert unknown.account_id not in receiver._host.store.cores, "an unknown account must not take memory"
    signature, _, created = header.split("~")
    with pytest.raises(TokenRefused) as refused:
        await verify_jazz_token(receiver, f"{signature}~{receiver.account_id}~{created}", now_ms=at)
    assert refused.value.reason == "signature"


async def test_both_create_the_same_token_for_the_same_account_and_time(tools: JavaScript, worker: Credentials) -> None:
    """Ed25519 signatures are a function of key and text, so no part of a token is random."""
    at = now_ms()
    assert await tools("token", actor="worker", at=at) == sign_jazz_token(worker, now_ms=at)


async def test_javascript_ignores_a_token_in_the_bound_form(tools: JavaScript, worker: Credentials) -> None:
    """`authenticateRequest` looks for `Jazz ` with a space, and treats anything else as an anonymous request."""
    assert await tools("authenticate", actor="worker", header=_bound(worker)) == {"account": None, "error": None}
