"""`make up` with KUBE_CONTEXT and IMAGE_REPOSITORY: a whole ReSide on a Kubernetes that exists."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from e2e.bootstraps import FIRST, beside
from e2e.pages import reader, scripts
from support.eventually import eventually_sync

from reside.cli import up

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from support.platform import Platform

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]


def test_make_up_uses_an_existing_cluster_and_a_second_run_changes_nothing(kubernetes: Platform) -> None:
    """The local cluster's kubeconfig and registry are all that it knows; it reaches pods by port-forward."""
    cluster = beside(kubernetes, "existing")
    make_up(cluster)
    for name in (*FIRST, "greeter"):
        if name != "seed":
            eventually_sync(f"{name}'s readiness", lambda name=name: cluster.ready_pods(name), within=240)
    assert {name: row["id"] for name, row in cluster.replicas().items()} == {**FIRST, "greeter": 3}
    described = json.loads(cluster.reside("cluster", "info", "--output", "json").stdout)
    assert described["name"] == up.elsewhere(cluster.info.context, cluster.namespace)
    assert described["access"] == "port-forward"
    pods = uids(cluster)
    make_up(cluster)
    assert uids(cluster) == pods
    kubernetes.run("kubectl", "delete", "namespace", cluster.namespace, "--wait=true")


def test_the_quick_start_of_the_readme_is_true(
    kubernetes: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubeconfig is the default one: no command names it."""
    cluster = beside(kubernetes, "reside")
    info = cluster.info
    monkeypatch.setenv("KUBECONFIG", str(info.kubeconfig))
    repository = f"{info.registry_host}/reside"
    shell = reader(cluster, tmp_path)
    shell.environment |= {
        "KUBECONFIG": str(info.kubeconfig),
        "RESIDE_REGISTRY_MIRRORS": json.dumps({info.registry_host: f"http://{info.registry_loopback}"}),
        "RESIDE_BOOTSTRAP_REGISTRY_MIRRORS": json.dumps({info.registry_host: info.registry_bridge}),
    }
    for script in scripts(
        "A Kubernetes cluster that you have", {"CONTEXT": info.context, "ghcr.io/acme/reside": repository}
    ):
        shell.run(script, seconds=600)
    assert {name: row["id"] for name, row in cluster.replicas().items()} == {**FIRST, "greeter": 3}
    kubernetes.run("kubectl", "delete", "namespace", cluster.namespace, "--wait=true")


def make_up(cluster: Platform) -> subprocess.CompletedProcess[str]:
    """Run the program of `make up` with a kubeconfig and a repository in the local cluster's registry."""
    info = cluster.info
    mirrors = json.dumps({info.registry_host: f"http://{info.registry_loopback}"})
    return cluster.run(
        *("env", f"RESIDE_REGISTRY_MIRRORS={mirrors}", sys.executable, "-m", "reside.cli.up"),
        *("--kubeconfig", str(info.kubeconfig), "--kube-context", info.context, "--namespace", cluster.namespace),
        *("--image-repository", f"{info.registry_host}/reside"),
        *("--registry-mirror", f"{info.registry_host}={info.registry_bridge}"),
        seconds=600,
    )


def uids(cluster: Platform) -> set[str]:
    """Return the UIDs of all pods."""
    return {pod["metadata"]["uid"] for pod in cluster.objects("Pod")}
