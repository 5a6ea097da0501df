"""How the Sentinel comes to a Kubernetes API."""

from pathlib import Path

import pytest

from reside.model.errors import InvalidInput
from reside.sentinel.cluster import connect

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
    with pytest.raises(InvalidInput, match=r"kubeconfig is no kubeconfig.*RESIDE_KUBECONFIG") as caught:
        async with connect("reside", path):
            pass
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__


async def test_a_kubeconfig_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        async with connect("reside", tmp_path / "nowhere"):
            pass
