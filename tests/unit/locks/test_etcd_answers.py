"""How locks handle responses that a healthy etcd rarely gives: lost, foreign, refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx2
import pytest

from reside.locks import EtcdUnavailable, LockService
from reside.locks.etcd import Etcd

pytestmark = pytest.mark.anyio


class Gateway:
    """A scripted JSON gateway; host `a` loses the response to each transaction, host `b` returns it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Return the scripted response."""
        body = json.loads(request.content)
        self.requests.append((request.url.path, body))
        if request.url.path == "/v3/lease/grant":
            return httpx2.Response(200, json={"ID": "7", "TTL": "30"})
        if request.url.path == "/v3/kv/txn":
            if request.url.host == "a":
                raise httpx2.ReadError("connection reset", request=request)
            entry = {"value": base64.b64encode(b"me").decode(), "create_revision": "5", "lease": "7"}
            return httpx2.Response(
                200, json={"header": {"revision": "6"}, "responses": [{"response_range": {"kvs": [entry]}}]}
            )
        return httpx2.Response(200, json={})


async def test_a_lock_whose_first_response_was_lost_is_recognised_by_its_own_lease() -> None:
    """Otherwise the client would wait for its own lock until the lease expires."""
    gateway = Gateway()
    service = LockService(["http://a", "http://b"], transport=httpx2.MockTransport(gateway))
    async with service, service.lock("key") as held:
        assert held.revision == 5


async def test_a_member_that_has_no_leader_is_skipped() -> None:
    """A member that is cut off from the others gives this response immediately until it is connected again."""
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        alone = request.url.host == "a"
        return httpx2.Response(503, text="etcdserver: no leader") if alone else httpx2.Response(200, json={"ID": "7"})

    client = Etcd(["http://a", "http://b"], transport=httpx2.MockTransport(answer))
    assert await client.grant(30) == 7
    assert await client.grant(30) == 7
    assert asked == ["a", "b", "b"]


async def test_every_transaction_contains_a_read_so_that_a_stale_member_can_not_serve_it() -> None:
    gateway = Gateway()
    client = Etcd(["http://b"], transport=httpx2.MockTransport(gateway))
    await client.confirm("key", 5, 7)
    [(_, body)] = gateway.requests
    for branch in ("success", "failure"):
        assert any("requestRange" in operation for operation in body[branch])


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (httpx2.Response(503, text="etcdserver: no leader"), "HTTP 503: etcdserver: no leader"),
        (httpx2.Response(200, text="<html>a proxy"), "not from etcd: <html>a proxy"),
        (httpx2.Response(200, json=[]), "not from etcd"),
    ],
)
async def test_an_unusable_response_counts_as_unavailable(answer: httpx2.Response, complaint: str) -> None:
    client = Etcd(["http://a"], transport=httpx2.MockTransport(lambda _: answer))
    with pytest.raises(EtcdUnavailable, match=complaint):
        await client.grant(30)


async def test_an_empty_list_of_hosts_is_refused() -> None:
    with pytest.raises(ValueError, match="no etcd host is given"):
        LockService([])
