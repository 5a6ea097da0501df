"""Bootstrap of further clusters in the same Kubernetes: by the seed's Job, and through the API server alone."""

from __future__ import annotations

import json
import re
import shutil
import sys
from base64 import b64decode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
import yaml
from e2e.bootstraps import FIRST, PHASES, STEPS, beside, check_up, contents, here, kill_at
from e2e.outside import outside
from e2e.pages import reader, scripts
from e2e.private_images import private_images, refusal
from support.api_only import api_only
from support.eventually import eventually_sync
from support.gateway import GATEWAY, create_gateway
from support.platform import REGISTRY

from reside.cli.cluster import DEFAULT_ACCOUNT
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.locations import located

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from e2e.outside import Outside
    from e2e.private_images import PrivateImages
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


DOMAIN = "team.example.org"
"""The domain of the README."""
JOINS = "A team's cluster with a domain"
"""The section of the README about a cluster with a domain."""
GATED = "gated.example.test"
"""A domain that a gateway serves."""


@dataclass(frozen=True)
class Remote:
    """A cluster, its registry, and the beginning of commands on a machine that reaches its API server alone."""

    cluster: Platform
    images: PrivateImages
    inside: tuple[str, ...]

    def reside(self, *arguments: str) -> list[str]:
        """Return a `reside` command for that machine."""
        return [*self.inside, *self.cluster.command, *arguments]


@pytest.fixture(scope="module")
def seeded(kubernetes: Platform) -> Iterator[Platform]:
    """Yield a cluster with a domain that the README's commands have created by the seed's Job; delete its namespace."""
    _check_that_a_domain_needs_an_issuer(beside(kubernetes, "unfilled"))
    cluster = beside(kubernetes, "team")
    known = {"letsencrypt": str(kubernetes.info.ingress_issuer)}
    create, *_ = scripts(JOINS, known | {"ghcr.io/acme/reside": f"{kubernetes.info.registry_host}/reside"})
    home = cluster.folder / "home"
    home.mkdir()
    shell = reader(cluster, home, home)
    shell.environment["KUBECONFIG"] = str(cluster.kubeconfig)
    shell.run(create, seconds=600)
    end = ("wait", "--for=delete", "job/seed", "--timeout=400s")
    cluster.run("kubectl", "--namespace", cluster.namespace, *end, seconds=430)
    yield cluster
    kubernetes.run("kubectl", "delete", "namespace", cluster.namespace, "--wait=true")


def _check_that_a_domain_needs_an_issuer(cluster: Platform) -> None:
    """Check what a seed does whose manifest has the placeholder of the issuer."""
    cluster.run("kubectl", "create", "namespace", cluster.namespace)
    manifest = cluster.reside("cluster", "manifest", *here(cluster)).stdout
    assert "${RESIDE_BOOTSTRAP_CLUSTER_ISSUER}" in manifest
    path = cluster.folder / "seed.yaml"
    path.write_text(manifest.replace("${RESIDE_BOOTSTRAP_DOMAIN}", DOMAIN))
    cluster.kubectl("apply", "-f", str(path))
    failed = ("configmap/reside-cluster", "--for=jsonpath={.data.result}=failed")
    cluster.run("kubectl", "--namespace", cluster.namespace, "wait", *failed, "--timeout=400s", seconds=430)
    assert "RESIDE_BOOTSTRAP_CLUSTER_ISSUER is not set" in _record(cluster)["error"]
    cluster.run("kubectl", "delete", "namespace", cluster.namespace, "--wait=false")


def test_the_seeds_job_creates_a_cluster_and_records_how(seeded: Platform) -> None:
    _check_record(seeded)
    check_up(seeded)


def test_a_cluster_is_used_by_its_domain_without_kubernetes(seeded: Platform) -> None:
    _use_from_outside(seeded)


def _use_from_outside(cluster: Platform) -> None:
    """Use the cluster by its domain alone: no kubeconfig, an account of its own, and certificates that are verified."""
    far = outside(cluster, DOMAIN)
    impostor = far.reside("cluster", "add", "far", DOMAIN, trusting=False)
    assert (impostor.returncode, "certificate" in impostor.stderr) == (1, True)
    _, join, grant = scripts(JOINS)
    added = eventually_sync(
        "Alpha's account by the domain", lambda: far.shell(join), lambda done: done.returncode == 0, within=120
    ).stdout
    known = json.loads(far.done("cluster", "info", "--output", "json"))
    assert known["alphaReplicaId"] == _record(cluster)["alphaAccount"]
    guest = json.loads(far.done("account", "list", "--output", "json"))[0]["accountId"]
    assert guest in added
    eventually_sync("an answer by the domain", lambda: far.reside("replica", "list"), _is_refused, within=120)
    reader(cluster, cluster.folder / "home").run(grant.replace("ACCOUNT", guest))
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


@pytest.fixture(scope="module")
def remote(kubernetes: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """Yield a cluster to be, and a machine that reaches the API server alone: no registry, pod or Service."""
    cluster, folder = beside(kubernetes, "killed"), tmp_path_factory.mktemp("remote")
    with (
        private_images(cluster, folder / "registry") as images,
        api_only(cluster.info.api_url, folder) as inside,
    ):
        _check_isolation(cluster, inside, images.host)
        create_gateway(cluster.info, GATED)
        yield Remote(cluster, images, inside)


def test_the_kubelet_needs_the_authority_and_the_password_of_a_registry(kubernetes: Platform, remote: Remote) -> None:
    known = json.loads((remote.cluster.folder / "state" / "images.json").read_text())
    image = located(known["seed"], f"{remote.images.host}/reside")
    elsewhere = replace(kubernetes, namespace="default")
    assert "certificate" in refusal(elsewhere, "without-authority", image)
    remote.images.trust(kubernetes)
    assert "401 Unauthorized" in refusal(elsewhere, "without-password", image)


def test_a_bootstrap_killed_in_each_phase_is_finished_by_the_next_run(remote: Remote) -> None:
    cluster = remote.cluster
    named = ["--namespace", cluster.namespace, "--kubeconfig", str(cluster.kubeconfig)]
    options = [*named, "--domain", GATED, "--gateway", GATEWAY, *remote.images.options]
    bootstrap = remote.reside("cluster", "bootstrap", cluster.namespace, *options)
    for step in STEPS.values():
        kill_at(cluster, bootstrap, step)
    cluster.run(*bootstrap, seconds=600)
    check_up(cluster)
    images = {each["image"] for pod in cluster.objects("Pod") for each in pod["spec"]["containers"]}
    assert images
    assert all(image.startswith(f"{remote.images.host}/reside/") for image in images)
    alphas = cluster.objects_of("alpha", "Deployment")
    assert len(alphas) == 1
    uids = {d["metadata"]["name"]: d["metadata"]["uid"] for d in cluster.objects("Deployment")}
    cluster.run(*bootstrap)
    assert uids == {d["metadata"]["name"]: d["metadata"]["uid"] for d in cluster.objects("Deployment")}
    accounts = json.loads(cluster.reside("account", "list", "--output", "json").stdout)
    assert [account["name"] for account in accounts] == [DEFAULT_ACCOUNT], "each run uses the account of the first"


def test_commands_use_the_api_server_alone(remote: Remote) -> None:
    """Each way to reach a cluster: Kubernetes, Jazz, Alpha's methods, and the Sentinel's answers."""
    cluster, own = remote.cluster, remote.cluster.accounts()[DEFAULT_ACCOUNT]
    listed = json.loads(cluster.run(*remote.reside("replica", "list", "--output", "json")).stdout)
    assert {row["name"] for row in listed} == set(FIRST)
    refused = cluster.run(*remote.reside("replica", "load", f"{REGISTRY}/missing:v1"), check=False)
    assert "no such image" in " ".join((refused.stderr + refused.stdout).split())
    cluster.run(*remote.reside("permission", "grant", own, "kubernetes-sentinel", "logs:read"))
    eventually_sync(
        "the logs of Alpha",
        lambda: cluster.run(*remote.reside("replica", "logs", "alpha"), check=False),
        _has_succeeded,
        within=120,
    )


def test_a_gateway_serves_the_domain_with_its_own_certificate(remote: Remote) -> None:
    cluster = remote.cluster
    routes = cluster.kubectl("get", "httproutes,ingresses", "--output=name").split()
    assert routes == [f"httproute.gateway.networking.k8s.io/{name}" for name in ("alpha", "jazz")]
    far = outside(cluster, GATED)
    eventually_sync(
        "Alpha's account by the gateway",
        lambda: far.reside("cluster", "add", "far", GATED, "--account", "guest"),
        _has_succeeded,
        within=120,
    )
    eventually_sync("an answer by the gateway", lambda: far.reside("replica", "list"), _is_refused, within=120)
    eventually_sync(
        "the state of the route",
        lambda: cluster.run(*remote.reside("replica", "describe", "alpha")).stdout,
        lambda shown: re.search(r"^HTTPRoute/alpha +current", shown, re.MULTILINE),
        within=120,
    )


def test_two_clusters_in_one_kubernetes_do_not_see_each_other(seeded: Platform, remote: Remote) -> None:
    clusters = {seeded.namespace: seeded, remote.cluster.namespace: remote.cluster}
    accounts = {name: _record(cluster)["alphaAccount"] for name, cluster in clusters.items()}
    assert len(set(accounts.values())) == len(clusters)
    labelled = ("--selector", f"{MANAGED_BY_LABEL}={FIELD_MANAGER}", "--output=name")
    assert seeded.kubectl("get", "clusterroles,clusterrolebindings", *labelled) == ""
    for mine, other in ((seeded, remote.cluster), (remote.cluster, seeded)):
        assert _rights(mine, other.namespace) == []
        _check_stranger(mine, other)
    before = contents(remote.cluster)
    uid = seeded.get("Ingress", "alpha")["metadata"]["uid"]
    seeded.kubectl("delete", "ingress", "alpha", "--wait=false")
    restored = eventually_sync(
        "the restored Ingress",
        lambda: seeded.get("Ingress", "alpha").get("metadata", {}).get("uid", uid),
        lambda now: now != uid,
        within=120,
    )
    assert restored != uid
    changed = {key for key, known in contents(remote.cluster).items() if before.get(key) != known}
    assert not [key for key in changed if not key.startswith(("Lease/", "Pod"))]


def test_identities_are_under_the_clusters_repository(remote: Remote) -> None:
    """The examples' code and manifests name contracts as in every cluster."""
    cluster, own = remote.cluster, f"{remote.images.host}/reside"
    cluster.build("examples/contracts/greeting.v1", "latest")
    for name in ("greeter", "caller"):
        image = cluster.build(f"examples/replicas/{name}", "v1")
        cluster.run(*remote.reside("replica", "load", image, "--auto-approve"), seconds=300)
    rows = json.loads(cluster.run(*remote.reside("replica", "list", "--output", "json")).stdout)
    assert {row["name"]: row["identity"] for row in rows} == {
        "seed": f"{own}/replicas/seed",
        "alpha": f"{own}/replicas/alpha",
        "kubernetes-sentinel": f"{own}/replicas/kubernetes-sentinel",
        "greeter": f"{own}/examples/greeter",
        "caller": f"{own}/examples/caller",
    }
    greeter = json.loads(cluster.run(*remote.reside("replica", "describe", "greeter", "--output", "json")).stdout)
    assert greeter["implements"] == [f"{own}/contracts/greeting.v1"]
    (pod,) = cluster.ready_pods("caller")
    metrics = ("curl", "--silent", "--fail", f"http://{pod['status']['podIP']}:8080/metrics")
    called = 'caller_calls_total{outcome="ok"}'
    eventually_sync("a greeting", lambda: cluster.run(*metrics).stdout, lambda text: called in text, within=120)


def _rights(cluster: Platform, namespace: str) -> list[str]:
    """Return what the ServiceAccounts of a cluster may do to objects of another namespace."""
    kinds = ("secrets", "pods", "deployments.apps", "configmaps")
    found = []
    for account in ("kubernetes-sentinel", "default"):
        who = f"--as=system:serviceaccount:{cluster.namespace}:{account}"
        for kind in kinds:
            for verb in ("list", "create"):
                asked = ("auth", "can-i", verb, kind, "--namespace", namespace, who)
                if cluster.run("kubectl", *asked, check=False).stdout.strip() != "no":
                    found.append(f"{account}: {verb} {kind}")
    return found


def _check_stranger(mine: Platform, other: Platform) -> None:
    """Check that an account of one cluster, a super admin there, is nobody in another one."""
    there = {"namespace": other.namespace}
    lost = _with_cluster(mine, "lost", there).reside("replica", "list", check=False)
    assert "is not in this cluster's Jazz" in " ".join(lost.stderr.split())
    stranger = _with_cluster(mine, "stranger", there | {"alphaReplicaId": _record(other)["alphaAccount"]})
    listed = stranger.reside("replica", "list", check=False)
    assert "the account needs replica:read:all" in listed.stderr
    loaded = stranger.reside("replica", "load", f"{REGISTRY}/missing:v1", check=False)
    assert "needs the permission load-request:create" in " ".join(loaded.stderr.split())


def _with_cluster(platform: Platform, name: str, members: dict[str, str]) -> Platform:
    """Return a configuration in which the clusters have other members."""
    found = replace(platform, folder=platform.folder / name)
    shutil.copytree(platform.folder / "config", found.folder / "config")
    path = found.folder / "config" / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["clusters"] = [{**each, **members} for each in config["clusters"]]
    path.write_text(yaml.safe_dump(config))
    return found


def _check_isolation(cluster: Platform, inside: tuple[str, ...], registry: str) -> None:
    kubectl = ("kubectl", "--kubeconfig", str(cluster.kubeconfig), "version", "--output=json")
    assert "serverVersion" in json.loads(cluster.run(*inside, *kubectl).stdout)
    probe = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
    for address in (registry, str(cluster.info.registry_bridge), str(cluster.info.registry_loopback)):
        refused = cluster.run(*inside, sys.executable, "-c", probe, *address.split(":"), check=False)
        assert "Error" in refused.stderr, f"{address} is reached"
