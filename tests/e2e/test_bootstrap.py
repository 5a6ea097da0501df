"""Bootstrap of further clusters in the same Kubernetes: by the seed's Job, and killed in each of its phases."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.platform import until

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)
PHASES = ("Storage", "Accounts", "Launch", "Load", "Handover")
FIRST = {"seed": 0, "alpha": 1, "kubernetes-sentinel": 2}


def _in(platform: Platform, namespace: str) -> Platform:
    """The same Kubernetes and another namespace, with a configuration of its own."""
    platform.kubectl("create", "namespace", namespace)
    cluster = replace(platform, namespace=namespace, folder=platform.folder / namespace)
    shutil.copytree(platform.folder / "state", cluster.folder / "state", ignore=shutil.ignore_patterns(".pulumi"))
    return cluster


def _stands(cluster: Platform) -> None:
    """The platform's pods are Ready, the list is right, and nothing of the seed is left."""
    for name in ("alpha", "kubernetes-sentinel"):
        until(f"{name}'s readiness", 120, lambda name=name: cluster.ready_pods(name))
    assert {name: row["id"] for name, row in cluster.replicas().items()} == FIRST
    kinds = "jobs,pods,deployments,serviceaccounts,roles,rolebindings"
    until("the end of the seed's objects", 120, lambda: "seed" not in cluster.kubectl("get", kinds, "-o", "name"))


def _here(cluster: Platform) -> list[str]:
    return ["--namespace", cluster.namespace, "--local", cluster.name]


def test_the_seeds_job_brings_a_cluster_up(platform: Platform) -> None:
    cluster = _in(platform, "seeded")
    manifest = cluster.reside("cluster", "manifest", *_here(cluster)).stdout
    assert "${RESIDE_BOOTSTRAP_DOMAIN}" in manifest
    assert "${RESIDE_BOOTSTRAP_CLUSTER_ISSUER}" in manifest
    (cluster.folder / "seed.yaml").parent.mkdir(exist_ok=True)
    (cluster.folder / "seed.yaml").write_text(manifest)
    cluster.kubectl("apply", "-f", str(cluster.folder / "seed.yaml"))
    until("the end of the seed", 400, lambda: not cluster.get("job", "seed"))
    cluster.reside("cluster", "claim-super-admin-access", "--cluster", cluster.namespace, *_here(cluster))
    _stands(cluster)
    platform.run("kubectl", "delete", "namespace", "seeded", "--wait=true")


def _bootstrap(cluster: Platform) -> list[str]:
    return [*cluster.command, "cluster", "bootstrap", cluster.namespace, *_here(cluster)]


def test_a_bootstrap_killed_in_each_phase_is_finished_by_the_next_run(platform: Platform) -> None:
    cluster = _in(platform, "killed")
    for phase in PHASES:
        run = subprocess.Popen(
            _bootstrap(cluster), env=cluster.environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        with run:
            assert run.stderr is not None
            seen = []
            for line in run.stderr:
                seen.append(line)
                if f" {phase} " in line and "begins" in line:
                    break
            else:
                pytest.fail(f"phase {phase} never began:\n{''.join(seen)}")
            os.killpg(run.pid, signal.SIGKILL)
    cluster.run(*_bootstrap(cluster), seconds=600)
    _stands(cluster)
    alphas = cluster.get("deployments", "-l", "reside.io/replica=alpha")["items"]
    assert len(alphas) == 1
    uids = {d["metadata"]["name"]: d["metadata"]["uid"] for d in cluster.get("deployments")["items"]}
    cluster.run(*_bootstrap(cluster))
    assert uids == {d["metadata"]["name"]: d["metadata"]["uid"] for d in cluster.get("deployments")["items"]}
    assert json.loads(cluster.reside("account", "list", "--output", "json").stdout)
