"""The bootstrap's state in an object store, encrypted with a key: S3 and KMS as moto's server has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.object_store import CREDENTIALS, Cloud, run_cloud

from reside.cli import project, state_store
from reside.cli.project import ROOT
from reside.model.errors import Conflict
from reside.seed import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulumi.automation import Deployment

    from reside.local import ClusterInfo

STACK = "in-a-store"
DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    """Yield a bucket and a key that the operator's environment names."""
    for name, value in {**CREDENTIALS, "RESIDE_CONFIG": str(tmp_path / "config")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RESIDE_STATE", str(tmp_path / "state"))
    with run_cloud() as found:
        monkeypatch.setenv(state_store.STORE, found.settings["backend"])
        monkeypatch.setenv(state_store.KEY, found.settings["secrets_provider"])
        yield found


def test_the_state_is_in_the_bucket_with_its_secrets_encrypted_by_the_key(
    cloud: Cloud, cluster: ClusterInfo, tmp_path: Path
) -> None:
    names = ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
    images = {name: f"registry.reside.internal/reside/{name}@{DIGEST}" for name in names}
    where = {"access": "direct", "kubeconfig": str(cluster.kubeconfig), "kube_context": cluster.context}
    found = settings.parse({"namespace": STACK, "images": images, **where}, "test")
    with project._stack(found, STACK) as stack:
        state = stack.export_stack()
        state.deployment["resources"] = [_with_secret()]
        stack.import_stack(state)
    assert [name for name in cloud.names() if name.endswith(f"/{STACK}.json")]
    assert b"very-secret" not in cloud.content()
    assert not (tmp_path / "state/.pulumi").exists()
    assert not (ROOT / f"stacks/Pulumi.{STACK}.yaml").exists()
    with project._stack(found, STACK) as stack:
        deployment = json.loads(json.dumps(stack.export_stack().deployment))
        assert deployment["secrets_providers"]["type"] == "cloud"
        assert len(deployment["resources"]) == 1
        assert stack.workspace.list_stacks()[0].name == STACK
        stack.import_stack(_of_cluster(stack.export_stack(), "another"))
    says = f"another cluster with the name {STACK}: .* Kubernetes cluster another, .*"
    with pytest.raises(Conflict, match=says), project._stack(found, STACK):
        pytest.fail("it is opened")
    project.forget(STACK, "this", STACK)
    assert [name for name in cloud.names() if name.endswith(f"/{STACK}.json")]
    for _ in range(2):
        project.forget(STACK, "another", STACK)
    assert not [name for name in cloud.names() if name.endswith(f"/{STACK}.json")]


def _of_cluster(state: Deployment, uid: str) -> Deployment:
    """Return the state with the first step of a bootstrap in another Kubernetes."""
    kind = "pulumi-python:dynamic:Resource"
    urn = f"urn:pulumi:{STACK}::reside::{kind}::namespace"
    step = {"urn": urn, "custom": True, "type": kind, "id": f"NamespaceProvider-{STACK}", "outputs": {"cluster": uid}}
    state.deployment["resources"].append(step)
    return state


def _with_secret() -> dict[str, object]:
    """Return the resource of the stack itself, with an output that is secret."""
    urn = f"urn:pulumi:{STACK}::reside::pulumi:pulumi:Stack::reside-{STACK}"
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": '"very-secret"'}
    return {"urn": urn, "custom": False, "type": "pulumi:pulumi:Stack", "outputs": {"hidden": secret}}
