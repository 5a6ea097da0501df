"""The settings of the replicas in the seed: as those of their pods, but for what this machine can reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from reside.access.addresses import Addresses
from reside.jazz import Credentials
from reside.seed import running, settings
from reside.seed.accounts import Identities

IMAGES = dict.fromkeys(("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd"), "r/x@sha256:" + "c" * 64)


@pytest.mark.parametrize(
    ("given", "variable", "used"),
    [
        ({"access": "port-forward"}, "/team/config", "/team/config"),
        ({"access": "port-forward"}, None, "/home/ada/.kube/config"),
        ({"access": "port-forward"}, "", "/home/ada/.kube/config"),
        ({"access": "port-forward", "kubeconfig": "/given"}, "/team/config", "/given"),
        ({"access": "in-cluster"}, "/team/config", None),
    ],
)
def test_the_sentinel_uses_the_kubeconfig_that_the_bootstrap_uses(
    given: dict[str, str], variable: str | None, used: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only in a pod there is a service account: elsewhere, the bootstrap waited for the Sentinel until its deadline."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    if variable is not None:
        monkeypatch.setenv("KUBECONFIG", variable)
    found = running.sentinel_settings(
        settings.parse({"namespace": "reside", "images": IMAGES, **given}, "test"),
        Identities(Credentials.generate(), Credentials.generate(), SecretStr("x")),
        "co_zBlock",
        Addresses("ws://127.0.0.1:1", "http://127.0.0.1:2"),
        Path("/scratch"),
    )
    assert found.kubeconfig == (None if used is None else Path(used))
