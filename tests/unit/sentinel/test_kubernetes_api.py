"""How the Sentinel connects to a Kubernetes API, lists and watches."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError
from lightkube.models.meta_v1 import Status

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.errors import InvalidInput
from reside.model.kinds import BY_KIND, EVENT, KINDS, Kind
from reside.sentinel.errors import ClusterRefused
from reside.sentinel.guard.api import KubernetesApi, connect

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "content",
    [
        b"users: [{name: a, user: {token: hunter2}}",
        b"- hunter2",
        b"hunter2 \xff",
        b"",
        b"current-context: a\ncontexts: [{name: a, context: {cluster: hunter2, user: b}}]",
    ],
)
async def test_a_broken_kubeconfig_is_named_with_the_cure_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"kubeconfig is not a kubeconfig.*RESIDE_KUBECONFIG") as caught:
        async with connect("reside", path):
            pass
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__


async def test_a_kubeconfig_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        async with connect("reside", tmp_path / "nowhere"):
            pass


class _Refusing:
    """An API client whose server quotes what it is sent."""

    async def patch(self, _kind: Any, name: str, sent: Any, **_options: Any) -> None:
        raise ApiError(status=Status(code=422, message=f"Secret {name} is invalid: {sent}"))


async def test_a_refusal_that_quotes_a_secret_is_reported_without_its_values() -> None:
    api = KubernetesApi(_Refusing(), "reside")  # type: ignore[arg-type] # only what apply needs
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2!"}}
    with pytest.raises(ClusterRefused, match=r"apply Secret/s: .*is invalid") as caught:
        await api.apply(secret)
    assert "hunter2" not in str(caught.value)
    assert "password" in str(caught.value)


class _Watching:
    """The part of lightkube's client that sends requests."""

    def __init__(self) -> None:
        self._client = self
        self.sent: list[dict[str, Any]] = []

    def prepare_request(self, *_: Any, params: dict[str, Any], **__: Any) -> dict[str, Any]:
        """Return what is asked for."""
        return params

    async def watch(self, request: dict[str, Any]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield a bookmark."""
        self.sent.append(request)
        yield "BOOKMARK", {"metadata": {"resourceVersion": "12"}}


@pytest.mark.parametrize("kind", [BY_KIND["Secret"], EVENT])
async def test_a_watch_asks_for_bookmarks_from_a_version(kind: Kind) -> None:
    client = _Watching()
    api = KubernetesApi(client, "reside")  # type: ignore[arg-type] # only what watch needs
    found = [event async for event in api.watch(kind, "10")]
    assert [(event, live["metadata"]) for event, live in found] == [("BOOKMARK", {"resourceVersion": "12"})]
    assert client.sent[0]["allowWatchBookmarks"] == "true"
    assert client.sent[0]["resourceVersion"] == "10"
    selectors = [client.sent[0].get("labelSelector"), client.sent[0].get("fieldSelector")]
    expected = ["", "reason!=BackOff,type=Warning"] if kind is EVENT else [f"{MANAGED_BY_LABEL}={FIELD_MANAGER}", ""]
    assert [",".join(sorted((text or "").split(","))) for text in selectors] == expected


class _Listing:
    """The part of lightkube's client that lists: every response has a hundred objects, and is there at once."""

    def __init__(self, responses: int) -> None:
        self._client = self
        self._responses = responses
        self._loop_rounds = 0
        self.decoded: list[int] = []
        self.requests: list[dict[str, Any]] = []

    def prepare_request(self, *_: Any, params: dict[str, Any], **__: Any) -> dict[str, Any]:
        """Return what is asked for, with the number of the response to come."""
        return {"params": params, "number": 0}

    def build_adapter_request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request as it is."""
        return request

    async def send(self, request: dict[str, Any]) -> int:
        """Return the number of a response."""
        self.requests.append(dict(request["params"]))
        request["number"] += 1
        return int(request["number"])

    def handle_response(self, _method: str, number: int, request: dict[str, Any]) -> tuple[bool, str, list[Any]]:
        """Return the objects of a response, and note in which round of the event loop."""
        self.decoded.append(self._loop_rounds)
        request["params"]["continue"] = str(number)
        items = [{"metadata": {"name": f"{number}-{item}"}} for item in range(100)]
        return number < self._responses, "7", items

    async def count_rounds(self) -> None:
        """Count the rounds of the event loop."""
        while True:
            await asyncio.sleep(0)
            self._loop_rounds += 1


async def test_lists_of_several_kinds_decode_one_response_in_each_round_of_the_event_loop() -> None:
    """After a restart, the lists of all kinds arrive together; the event loop stood still for 0.25 s."""
    client = _Listing(responses=3)
    api = KubernetesApi(client, "reside")  # type: ignore[arg-type] # only what a list needs
    counting = asyncio.create_task(client.count_rounds())
    lists = await asyncio.gather(*(api.list_all(kind) for kind in KINDS))
    counting.cancel()
    for objects, version in lists:
        assert [live["metadata"]["name"] for live in objects][:: len(objects) - 1] == ["1-0", "3-99"]
        assert (len(objects), version) == (300, "7")
    assert len(client.decoded) == 3 * len(KINDS)
    assert len(set(client.decoded)) == len(client.decoded)
    assert sum("continue" in request for request in client.requests) == 2 * len(KINDS)
