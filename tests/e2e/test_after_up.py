"""After `make up`: the platform's pods are ready, and the list shows all replicas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_the_platforms_pods_are_ready(platform: Platform) -> None:
    for selector in ("alpha", "kubernetes-sentinel", "greeter"):
        assert platform.ready_pods(selector), selector
    for name in ("jazz-0", "etcd-0"):
        conditions = {c["type"]: c["status"] for c in platform.get("Pod", name)["status"]["conditions"]}
        assert conditions["Ready"] == "True", name


def test_the_replica_list_shows_the_first_four(platform: Platform) -> None:
    listed = json.loads(platform.reside("replica", "list", "--output", "json").stdout)
    ids = {row["id"]: row["name"] for row in listed}
    assert {0: "seed", 1: "alpha", 2: "kubernetes-sentinel", 3: "greeter"}.items() <= ids.items()


def test_the_doctor_finds_nothing_wrong(platform: Platform) -> None:
    done = eventually_sync(
        "a healthy cluster",
        lambda: platform.reside("doctor", "--output", "json", "--deadline", "60", check=False),
        lambda done: done.returncode == 0,
        within=180,
    )
    found = {each["check"]: each for each in json.loads(done.stdout)}
    for name in ("kubernetes", "clock", "certificates", "jazz and alpha", "alpha leads", "kubernetes-sentinel leads"):
        assert found[name]["status"] == "ok", found[name]
    assert found["permissions"]["what"] == "all of a super admin on Alpha"
    assert found["release"]["what"].startswith("that of this machine: ")


def test_up_reports_the_time_of_each_phase(platform: Platform) -> None:
    for phase in ("kubernetes", "images", "bootstrap", "example"):
        assert phase in platform.up_output.lower()


def test_nothing_of_the_seed_is_left(platform: Platform) -> None:
    text = platform.kubectl("get", "jobs,pods,serviceaccounts,roles,rolebindings", "-o", "name")
    assert not [line for line in text.splitlines() if "seed" in line]


def test_every_workload_has_probes_requests_and_a_grace_period(platform: Platform) -> None:
    workloads = [
        *platform.objects("Deployment", {"app.kubernetes.io/managed-by": "kubernetes-sentinel"}),
        *platform.objects("StatefulSet"),
    ]
    assert {w["metadata"]["name"].rsplit("-", 1)[0] for w in workloads} >= {"alpha", "kubernetes-sentinel", "greeter"}
    for workload in workloads:
        pod = workload["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] > 0
        for container in pod["containers"]:
            assert container["livenessProbe"], workload["metadata"]["name"]
            assert container["readinessProbe"], workload["metadata"]["name"]
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
            assert "@sha256:" in container["image"]
