"""An unusable kubeconfig is reported in one line that quotes nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.access.client import connect
from reside.access.target import Target
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
NAMED = """
current-context: here
contexts: [{name: here, context: {cluster: missing, user: me}}]
clusters: []
users: [{name: me, user: {token: very-secret}}]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("users: [{token: very-secret", "is not YAML"),
        ("very-secret", "is not a kubeconfig"),
        ("token: very-secret", "is not a kubeconfig"),
        ("clusters: 5", "is not a kubeconfig"),
        (NAMED, "names a cluster or user that it does not define"),
        (NAMED.replace("current-context: here", "current-context: there"), "Context 'there' not found"),
    ],
)
async def test_an_invalid_kubeconfig_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=message) as refused:
        async with connect(Target("reside", "direct", str(file), None, 1.0)):
            pass
    assert str(file) in str(refused.value)
    assert "very-secret" not in str(refused.value)


async def test_a_kubeconfig_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"can't be used: Configuration file .* not found"):
        async with connect(Target("reside", "direct", str(tmp_path / "none"), None, 1.0)):
            pass
