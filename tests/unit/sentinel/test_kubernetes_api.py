"""How the Sentinel connects to a Kubernetes API."""

from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError
from lightkube.models.meta_v1 import Status

from reside.model.errors import InvalidInput
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
