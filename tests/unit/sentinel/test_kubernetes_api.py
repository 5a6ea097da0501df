"""How the Sentinel connects to a Kubernetes API."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError
from lightkube.models.meta_v1 import Status

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.errors import InvalidInput
from reside.model.kinds import BY_KIND, EVENT, Kind
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
    selectors = [client.sent[0]["labelSelector"], client.sent[0]["fieldSelector"]]
    expected = ["", "reason!=BackOff,type=Warning"] if kind is EVENT else [f"{MANAGED_BY_LABEL}={FIELD_MANAGER}", ""]
    assert [",".join(sorted((text or "").split(","))) for text in selectors] == expected
