"""A control plane only: real etcd, API server and controller-manager on loopback, without root or interfaces."""

import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.clusters import fresh_state
from support.eventually import eventually_sync

from reside.common.processes import identify
from reside.local import ClusterInfo, Event, LocalCluster, NoSuchClusterError, UnknownComponentError
from reside.local.processes import marked
from reside.local.toolchain import Toolchain

COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Yield one instance for all tests; each begins with `up`, which repairs what the one before did to it."""
    cluster = LocalCluster("alone", fresh_state("alone"), control_plane_only=True)
    yield cluster
    cluster.down(delete_state=True)


def kubectl(info: ClusterInfo, *arguments: str) -> str:
    binary = Toolchain.default().find("kubectl")
    done = subprocess.run(
        [binary, "--kubeconfig", info.kubeconfig, "--context", info.context, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def pids(cluster: LocalCluster) -> dict[str, int | None]:
    return {status.name: status.pid for status in cluster.status()}


def has_ended(pid: int) -> bool:
    return identify(pid) is None


def kill(cluster: LocalCluster, *names: str) -> None:
    """Kill -9 these components, and wait until they have ended."""
    for name in names:
        pid = pids(cluster)[name]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually_sync(f"the end of {name}", partial(has_ended, pid), within=60)


def test_up_serves_the_api_and_runs_controllers(cluster: LocalCluster) -> None:
    info = cluster.up()
    kubectl(info, "create", "namespace", "made")
    eventually_sync(
        "the default account",
        lambda: kubectl(info, "-n", "made", "get", "serviceaccounts", "-o", "name"),
        lambda found: "default" in found,
    )
    assert [status.state for status in cluster.status()] == ["running"] * 3


def test_the_description_is_readable_from_another_process(cluster: LocalCluster) -> None:
    assert cluster.up() == LocalCluster("alone", cluster.state).info()


def test_a_second_up_changes_nothing(cluster: LocalCluster) -> None:
    cluster.up()
    before = pids(cluster)
    events: list[Event] = []
    cluster.up(events.append)
    assert pids(cluster) == before
    assert {event.phase for event in events} == {"unchanged"}


@pytest.mark.parametrize("victims", [*([name] for name in COMPONENTS), COMPONENTS], ids="+".join)
def test_up_after_kill_repairs_and_keeps_the_data(cluster: LocalCluster, victims: list[str]) -> None:
    info = cluster.up()
    name = f"kept-{len(victims)}-{victims[0]}"
    kubectl(info, "create", "configmap", name, "--from-literal=a=b")
    kill(cluster, *victims)
    assert {status.name for status in cluster.status() if status.state == "stopped"} >= set(victims)
    assert cluster.up() == info
    assert kubectl(info, "get", "configmap", name, "-o", "jsonpath={.data.a}") == "b"
    assert [status.state for status in cluster.status()] == ["running"] * 3


def test_up_replaces_a_process_whose_record_was_lost(cluster: LocalCluster) -> None:
    cluster.up()
    before = pids(cluster)["etcd"]
    assert before is not None
    (cluster.state / "run" / "etcd.json").unlink()
    info = cluster.up()
    assert has_ended(before)
    assert kubectl(info, "get", "--raw", "/readyz") == "ok"


def test_up_restarts_a_hanging_component(cluster: LocalCluster) -> None:
    cluster.up()
    before = pids(cluster)["kube-controller-manager"]
    assert before is not None
    os.kill(before, signal.SIGSTOP)
    cluster.up()
    assert pids(cluster)["kube-controller-manager"] != before
    assert has_ended(before)


def test_down_leaves_no_process_and_keeps_the_state(cluster: LocalCluster) -> None:
    info = cluster.up()
    kubectl(info, "create", "configmap", "kept-by-down")
    cluster.down()
    assert list(marked(cluster.state)) == []
    kubectl(cluster.up(), "get", "configmap", "kept-by-down")


def test_down_with_deleted_state_leaves_nothing(cluster: LocalCluster) -> None:
    cluster.up()
    cluster.down(delete_state=True)
    assert not cluster.state.exists()
    assert list(marked(cluster.state)) == []
    cluster.down(delete_state=True)
    with pytest.raises(NoSuchClusterError, match="reside local up"):
        cluster.info()


def test_down_ends_the_processes_of_a_deleted_state_folder(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.up()
    cluster.state.rename(tmp_path / "gone")
    assert list(marked(cluster.state)) != []
    cluster.down()
    assert list(marked(cluster.state)) == []


def test_two_control_planes_run_side_by_side(cluster: LocalCluster) -> None:
    other = LocalCluster("beside", fresh_state("beside"), control_plane_only=True)
    try:
        first, second = cluster.up(), other.up()
        kubectl(first, "create", "configmap", "only-in-the-first")
        assert "only-in-the-first" not in kubectl(second, "get", "configmaps", "-o", "name")
        other.down()
        assert kubectl(first, "get", "--raw", "/readyz") == "ok"
    finally:
        other.down(delete_state=True)


def test_every_port_is_on_loopback(cluster: LocalCluster) -> None:
    cluster.up()
    mine = {status.pid for status in cluster.status()}
    listening = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True, timeout=30).stdout
    ours = [line.split()[3] for line in listening.splitlines() if any(f"pid={pid}," in line for pid in mine)]
    assert ours
    assert [address for address in ours if not address.startswith("127.0.0.1:")] == []


def test_the_api_refuses_clients_without_a_certificate(cluster: LocalCluster, tmp_path: Path) -> None:
    info = cluster.up()
    done = subprocess.run(
        [Toolchain.default().find("kubectl"), "--server", info.api_url, "--insecure-skip-tls-verify", "get", "ns"],
        env={"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode != 0


def test_log_names_the_file_of_a_component(cluster: LocalCluster) -> None:
    cluster.up()
    assert cluster.log("etcd").exists()
    with pytest.raises(UnknownComponentError, match="kube-apiserver"):
        cluster.log("kubelet")
