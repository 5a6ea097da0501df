"""Bootstrap of further clusters in the same Kubernetes: by the seed's Job, and killed in each of its phases."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from e2e.bootstraps import FIRST, PHASES, beside, bootstrap, check_up, claim, here
from e2e.outside import outside
from support.eventually import eventually_sync
from support.platform import REGISTRY

from reside.cli.cluster import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    import subprocess

    from e2e.bootstraps import Killed
    from e2e.outside import Outside
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


DOMAIN = "seeded.example.test"


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
    """Use the cluster by its domain alone: no kubeconfig, an account of its own, and certificates that are verified."""
    far = outside(cluster, DOMAIN)
    impostor = far.reside("cluster", "add", "far", DOMAIN, trusting=False)
    assert (impostor.returncode, "certificate" in impostor.stderr) == (1, True)
    added = eventually_sync(
        "Alpha's account by the domain",
        lambda: far.reside("cluster", "add", "far", DOMAIN, "--account", "guest"),
        lambda done: done.returncode == 0,
        within=120,
    ).stdout
    known = json.loads(far.done("cluster", "info", "--output", "json"))
    assert known["alphaReplicaId"] == _record(cluster)["alphaAccount"]
    guest = json.loads(far.done("account", "list", "--output", "json"))[0]["accountId"]
    assert guest in added
    eventually_sync("an answer by the domain", lambda: far.reside("replica", "list"), _is_refused, within=120)
    cluster.reside("permission", "grant", guest, "--super-admin")
    listed = json.loads(far.done("replica", "list", "--output", "json"))
    assert {row["name"] for row in listed} == set(FIRST)
    unverified = far.reside("replica", "list", trusting=False)
    assert (unverified.returncode, "certificate" in unverified.stderr) == (1, True)
    _load_and_call_from_outside(cluster, far, guest)


def _is_refused(done: subprocess.CompletedProcess[str]) -> bool:
    return "the account needs replica:read:all" in done.stderr


def _load_and_call_from_outside(cluster: Platform, far: Outside, guest: str) -> None:
    missing = far.reside("replica", "load", f"{REGISTRY}/missing:v1")
    assert "no such image" in " ".join((missing.stderr + missing.stdout).split())
    cluster.build("examples/contracts/greeting.v1", "latest")
    image = cluster.build("examples/replicas/greeter", "v1")
    assert "greeter (id 3) version 1 is running" in far.done("replica", "load", image, typed="y\n")
    assert "greet" in far.program("e2e.greet").stderr  # it names the permission that is missing
    far.done("permission", "grant", guest, "greeter", "greet")
    certificates = json.loads(cluster.kubectl("get", "certificates", "--output=json"))["items"]
    assert [each["metadata"]["name"] for each in certificates] == ["jazz-tls"], "all Ingresses share one"
    eventually_sync(
        "a greeting", lambda: far.program("e2e.greet"), lambda done: "Hello, outside" in done.stdout, within=120
    )
    assert "lacks logs:read" in far.reside("replica", "logs", "greeter").stderr
    far.done("permission", "grant", guest, "kubernetes-sentinel", "logs:read")
    (pod,) = cluster.ready_pods("greeter")
    read = eventually_sync("the logs", lambda: far.reside("replica", "logs", "greeter"), _has_succeeded, within=120)
    written = cluster.kubectl("logs", pod["metadata"]["name"]).splitlines()
    assert written[0] in read.stdout.splitlines()
    assert "replica nobody does not exist" in far.reside("replica", "logs", "nobody").stderr


def _has_succeeded(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0


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
