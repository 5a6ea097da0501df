"""Bootstrap of further clusters in the same Kubernetes: by the seed's Job, and killed in each of its phases."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from e2e.bootstraps import FIRST, PHASES, beside, bootstrap, check_up, claim, here
from support.eventually import eventually_sync
from support.platform import REGISTRY

from reside.cli.cluster import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    from e2e.bootstraps import Killed
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


DOMAIN = "seeded.example.test"
IN_ITS_OWN_HOSTS = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"')
"""Run a command that sees another /etc/hosts: `$0` is the file, the rest is the command."""


def test_the_seeds_job_creates_a_cluster_that_is_used_by_its_domain(kubernetes: Platform) -> None:
    cluster = beside(kubernetes, "seeded")
    kubernetes.kubectl("create", "namespace", "seeded")
    manifest = cluster.reside("cluster", "manifest", *here(cluster)).stdout
    assert "${RESIDE_BOOTSTRAP_DOMAIN}" in manifest
    assert "${RESIDE_BOOTSTRAP_CLUSTER_ISSUER}" in manifest
    _apply(cluster, manifest.replace("${RESIDE_BOOTSTRAP_DOMAIN}", DOMAIN))
    _wait_for(cluster, "failed")
    assert "RESIDE_BOOTSTRAP_CLUSTER_ISSUER is not set" in _record(cluster)["error"]
    cluster.kubectl("delete", "job", "seed")
    filled = manifest.replace("${RESIDE_BOOTSTRAP_DOMAIN}", DOMAIN)
    _apply(cluster, filled.replace("${RESIDE_BOOTSTRAP_CLUSTER_ISSUER}", str(kubernetes.info.ingress_issuer)))
    _wait_for(cluster, "succeeded")
    end = ("wait", "--for=delete", "job/seed", "--timeout=400s")
    cluster.run("kubectl", "--namespace", cluster.namespace, *end, seconds=430)
    _check_record(cluster)
    claim(cluster)
    check_up(cluster)
    _use_from_outside(cluster)
    kubernetes.run("kubectl", "delete", "namespace", "seeded", "--wait=true")


def _use_from_outside(cluster: Platform) -> None:
    """Use the cluster by its domain alone: no kubeconfig, only the account, and certificates that are verified."""
    folder = cluster.folder / "outside"
    (folder / "home").mkdir(parents=True)
    shutil.copytree(cluster.folder / "config", folder / "config")
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{cluster.info.ingress_address} {DOMAIN}\n")
    plain = {key: value for key, value in cluster.outside().items() if key != "HOME"}
    plain |= {"HOME": str(folder / "home"), "KUBECONFIG": str(folder / "none"), "RESIDE_CONFIG": str(folder / "config")}
    trusting = {**plain, "SSL_CERT_FILE": str(cluster.info.ingress_authority), "SSL_CERT_DIR": str(folder / "home")}

    def reside(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [*IN_ITS_OWN_HOSTS, str(folder / "hosts"), *cluster.command, *arguments]
        given = environment or trusting
        return subprocess.run(command, env=given, capture_output=True, text=True, timeout=300, check=False)

    alpha = _record(cluster)["alphaAccount"]
    added = reside("cluster", "add", "far", DOMAIN, "--alpha", alpha, "--account", DEFAULT_ACCOUNT)
    assert added.returncode == 0, added.stderr
    eventually_sync(
        "the replicas by the domain",
        lambda: reside("replica", "list", "--output", "json"),
        lambda done: done.returncode == 0 and {row["name"] for row in json.loads(done.stdout)} == set(FIRST),
        within=120,
    )
    refused = reside("replica", "load", f"{REGISTRY}/missing:v1")
    assert "registry.reside.internal" in refused.stderr + refused.stdout
    assert "no such image" in " ".join((refused.stderr + refused.stdout).split())
    unverified = reside("replica", "list", **plain)
    assert unverified.returncode != 0
    assert "certificate" in unverified.stderr


def _apply(cluster: Platform, manifest: str) -> None:
    cluster.folder.mkdir(exist_ok=True)
    (cluster.folder / "seed.yaml").write_text(manifest)
    cluster.kubectl("apply", "-f", str(cluster.folder / "seed.yaml"))


def _wait_for(cluster: Platform, result: str) -> None:
    record = ("configmap/reside-cluster", f"--for=jsonpath={{.data.result}}={result}")
    cluster.run("kubectl", "--namespace", cluster.namespace, "wait", *record, "--timeout=400s", seconds=430)


def _record(cluster: Platform) -> dict[str, str]:
    data: dict[str, str] = json.loads(cluster.kubectl("get", "configmap", "reside-cluster", "--output=json"))["data"]
    return data


def _check_record(cluster: Platform) -> None:
    """Check that what outlives the seed says that each phase is done, and what a client has to know."""
    data = _record(cluster)
    phases = json.loads(data["phases"])
    assert [(each["name"], each["result"]) for each in phases] == [(name.lower(), "done") for name in PHASES]
    assert all(each["started"] <= each["ended"] for each in phases)
    secret = json.loads(cluster.kubectl("get", "secret", "alpha", "--output=json"))["data"]
    assert data["alphaAccount"] == b64decode(secret["accountId"]).decode()
    assert (data["error"], data["namespace"]) == ("", cluster.namespace)
    images = json.loads((cluster.folder / "state" / "images.json").read_text())
    assert data["release"] == images["seed"]
    about = "--field-selector=involvedObject.name=reside-cluster"
    events = json.loads(cluster.kubectl("get", "events", about, "--output=json"))["items"]
    assert [each["reason"] for each in events].count("PhaseDone") == len(PHASES)
    assert "BootstrapSucceeded" in {each["reason"] for each in events}


def test_a_bootstrap_killed_in_each_phase_is_finished_by_the_next_run(killed: Killed) -> None:
    cluster = killed.cluster
    check_up(cluster)
    alphas = cluster.objects_of("alpha", "Deployment")
    assert len(alphas) == 1
    uids = {d["metadata"]["name"]: d["metadata"]["uid"] for d in cluster.objects("Deployment")}
    cluster.run(*bootstrap(cluster))
    assert uids == {d["metadata"]["name"]: d["metadata"]["uid"] for d in cluster.objects("Deployment")}
    accounts = json.loads(cluster.reside("account", "list", "--output", "json").stdout)
    assert [account["name"] for account in accounts] == [DEFAULT_ACCOUNT], "each run uses the account of the first"
