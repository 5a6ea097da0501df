"""The bootstrap's dynamic resources: names that existing states contain, and what counts as a change."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from pydantic import SecretStr

from reside.jazz import Credentials
from reside.model.cluster import ClusterSettings
from reside.seed import accounts, settings
from stacks.bootstrap import dynamic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DIGEST = "sha256:" + "c" * 64
DATA = {
    "namespace": "ns",
    "images": {
        name: f"registry.reside.internal/reside/{name}@{DIGEST}"
        for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
    },
}
PROVIDERS = [
    dynamic.NamespaceProvider,
    dynamic.ReadyProvider,
    dynamic.IdentitiesProvider,
    dynamic.LaunchedProvider,
    dynamic.LoadedProvider,
    dynamic.HandedOverProvider,
]


def props(**change: Any) -> dict[str, Any]:
    return {"settings": settings.parse({**DATA, **change}, "test").to_json()}


def test_names_are_frozen_because_states_hold_them_pickled() -> None:
    assert [f"{p.__module__}.{p.__qualname__}" for p in PROVIDERS] == [
        "stacks.bootstrap.dynamic.NamespaceProvider",
        "stacks.bootstrap.dynamic.ReadyProvider",
        "stacks.bootstrap.dynamic.IdentitiesProvider",
        "stacks.bootstrap.dynamic.LaunchedProvider",
        "stacks.bootstrap.dynamic.LoadedProvider",
        "stacks.bootstrap.dynamic.HandedOverProvider",
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_equal_settings_are_no_change(provider: type[dynamic.StepProvider]) -> None:
    assert not provider().diff("id", props(), props()).changes


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_way_to_the_same_cluster_is_no_change(provider: type[dynamic.StepProvider]) -> None:
    assert not provider().diff("id", props(), props(kubeconfig="/elsewhere", access="direct")).changes


def test_alpha_is_loaded_again_when_a_setting_of_its_pod_changes() -> None:
    assert set(dynamic.LoadedProvider.watched) == {"images", *ClusterSettings.model_fields} - {"namespace"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_namespace_is_another_cluster(provider: type[dynamic.StepProvider]) -> None:
    found = provider().diff("id", props(), props(namespace="other"))
    assert found.changes
    assert found.replaces == ["settings"]


@pytest.mark.parametrize(
    ("provider", "changes"),
    [
        (dynamic.ReadyProvider, False),
        (dynamic.IdentitiesProvider, False),
        (dynamic.LaunchedProvider, False),
        (dynamic.LoadedProvider, True),
        (dynamic.HandedOverProvider, True),
    ],
)
def test_new_images_are_loaded_and_handed_over(provider: type[dynamic.StepProvider], changes: bool) -> None:
    images = {**DATA["images"], "alpha": f"registry.reside.internal/reside/alpha@sha256:{'d' * 64}"}  # type: ignore[dict-item]
    found = provider().diff("id", props(), props(images=images))
    assert found.changes is changes
    assert not found.replaces


def test_the_accounts_leave_their_step_without_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state contains the outputs in plain text."""
    found = accounts.Identities(Credentials.generate(), Credentials.generate(), SecretStr("passphrase"))

    @asynccontextmanager
    async def nowhere(_target: object) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(jazz="ws://127.0.0.1:9")

    monkeypatch.setattr("reside.access.addresses.addresses", nowhere)
    recorded = MagicMock()
    monkeypatch.setattr("reside.seed.recording._run", recorded)
    monkeypatch.setattr("reside.seed.accounts.ensure_identities", AsyncMock())
    monkeypatch.setattr("reside.seed.running.prepare", AsyncMock(return_value=(found, None)))
    monkeypatch.setattr("reside.seed.sentinel.begin_careful_mode", AsyncMock())
    given = props()
    outputs = dynamic.IdentitiesProvider().create(given).outs
    assert outputs == {**given, "alpha": found.alpha.account_id, "sentinel": found.sentinel.account_id}
    assert recorded.called
