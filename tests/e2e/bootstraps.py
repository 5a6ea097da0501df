"""ReSide clusters in one Kubernetes: each has a namespace and an operator's configuration."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.platform import Platform

STEPS = {
    "Storage": "namespace",
    "Accounts": "identities",
    "Launch": "launched",
    "Load": "loaded",
    "Handover": "handed-over",
}
"""Phases, and the step with which each begins: objects of Accounts are created beside those of Storage."""
PHASES = tuple(STEPS)
FIRST = {"seed": 0, "alpha": 1, "kubernetes-sentinel": 2}
"""The replicas of a new cluster and their ids."""
OWN = {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
"""Objects that Kubernetes creates in each namespace."""
_EVENTS = ("events", "events.events.k8s.io")
"""Objects that Kubernetes keeps in a namespace for an hour, whatever happens to it."""


def beside(platform: Platform, namespace: str) -> Platform:
    """Return the same Kubernetes with another namespace and configuration, and with the images' digests."""
    cluster = replace(platform, namespace=namespace, folder=platform.folder / namespace)
    shutil.copytree(platform.folder / "state", cluster.folder / "state", ignore=shutil.ignore_patterns(".pulumi"))
    return cluster


def here(cluster: Platform) -> list[str]:
    """Options of `reside cluster` commands that name this cluster."""
    return ["--namespace", cluster.namespace, "--local", cluster.name]


def bootstrap(cluster: Platform) -> list[str]:
    """Return the command that creates a cluster."""
    return [*cluster.command, "cluster", "bootstrap", cluster.namespace, *here(cluster)]


@dataclass(frozen=True)
class Spare:
    """A cluster that a test may delete, and what its namespace had before."""

    cluster: Platform
    before: set[str]


def kill_at(cluster: Platform, command: Sequence[str], step: str) -> None:
    """Run a command of the operator, and kill it and its processes at the start of a step."""
    run = subprocess.Popen(command, env=cluster.environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    with run:
        wait_for_start(run, step)
        os.killpg(run.pid, signal.SIGKILL)


def wait_for_start(run: subprocess.Popen[str], step: str) -> None:
    """Read the progress of a command until a step has started."""
    assert run.stderr is not None
    seen = []
    for line in run.stderr:
        seen.append(line)
        if f" {step} " in line and "started" in line:
            return
    pytest.fail(f"{step} never began:\n{''.join(seen)}")


def check_up(cluster: Platform) -> None:
    """Check that the platform's pods are ready, the list is correct, and nothing of the seed remains."""
    for name in ("alpha", "kubernetes-sentinel"):
        eventually_sync(f"{name}'s readiness", lambda name=name: cluster.ready_pods(name), within=240)
    assert {name: row["id"] for name, row in cluster.replicas().items()} == FIRST
    kinds = "jobs,pods,deployments,serviceaccounts,roles,rolebindings"
    eventually_sync(
        "the end of the seed's objects", lambda: "seed" not in cluster.kubectl("get", kinds, "-o", "name"), within=240
    )


def claim(cluster: Platform) -> None:
    """Add the cluster to the operator's configuration and become its super admin."""
    cluster.reside("cluster", "claim-super-admin-access", "--cluster", cluster.namespace, *here(cluster))


def contents(cluster: Platform) -> dict[str, tuple[str, int, str]]:
    """Return all objects of the namespace, of every listable kind: `Kind/name` → uid, generation, version."""
    listed = cluster.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
    kinds = ",".join(kind for kind in listed if kind not in _EVENTS)
    found = {}
    for item in json.loads(cluster.kubectl("get", kinds, "--output=json"))["items"]:
        metadata = item["metadata"]
        known = (metadata["uid"], metadata.get("generation", 0), metadata["resourceVersion"])
        found[f"{item['kind']}/{metadata['name']}"] = known
    return found
