"""Several nodes of a local cluster: what each has of its own, what is refused, and when a node has ended."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from reside.local import LocalCluster, UsageError, cgroups, pki
from reside.local.addons import objects
from reside.local.allocation import Allocation, IndexAllocator, extend, layout_of, read_allocation, with_nodes
from reside.local.components import Component, SocketHealth, control_plane
from reside.local.control_nodes import ended_nodes
from reside.local.info import describe, read_info, write_info
from reside.local.layout import Layout
from reside.local.node import after_objects, config_files, node
from reside.local.node_controller import OUT_OF_SERVICE, NodeController, decide
from reside.local.node_layout import NodeLayout, existing_nodes, nodes
from reside.local.node_removal import surplus
from reside.local.supervise import Place, Supervisor

THREE = Layout("three", 4, Path("/state"), control_plane_only=False, nodes=3)
PER_NODE = ("containerd", "kubelet", "kube-proxy")


def find(tool: str) -> Path:
    return Path("/tools") / tool


def test_each_node_has_a_runtime_a_kubelet_and_a_proxy_in_its_own_namespaces() -> None:
    found = {component.name: component.node for component in node(THREE, find)}
    for name in PER_NODE:
        assert (found[name], found[f"{name}-2"], found[f"{name}-3"]) == (1, 2, 3)


def test_every_dependency_exists() -> None:
    components = [*control_plane(THREE, find), *node(THREE, find), *after_objects(THREE)]
    names = [component.name for component in components]
    assert len(names) == len(set(names))
    assert {need for component in components for need in component.needs} <= set(names)


def test_nodes_share_no_path_address_or_group() -> None:
    files = config_files(THREE, find, "secret", [])
    kubelets = [yaml.safe_load(files[each.config / "kubelet.yaml"]) for each in nodes(THREE)]
    for member in ("address", "containerRuntimeEndpoint", "cgroupRoot", "podLogsDir", "tlsCertFile", "resolvConf"):
        assert len({kubelet[member] for kubelet in kubelets}) == 3, member
    for member in ("address", "pod_range", "name", "namespace", "state", "config", "runtime", "kubelet_root"):
        assert len({getattr(each, member) for each in nodes(THREE)}) == 3, member
    assert len({files[each.config / "cni" / "10-reside.conflist"] for each in nodes(THREE)}) == 3


def test_the_groups_of_all_nodes_are_inside_that_of_the_cluster() -> None:
    first, *further = nodes(THREE)
    assert first.cgroup == THREE.cgroup
    assert [each.cgroup for each in further] == [f"{THREE.cgroup}/node2", f"{THREE.cgroup}/node3"]
    assert len({each.pods_cgroup for each in nodes(THREE)}) == 3


def test_each_kubelet_has_the_certificate_of_its_node() -> None:
    found = {item.name: item for item in pki.certificates(THREE)}
    for each, name in zip(nodes(THREE), ("kubelet", "kubelet-2", "kubelet-3"), strict=True):
        assert found[name].common_name == f"system:node:{each.name}"
        assert found[name].names == (each.name, each.address)


def test_a_single_node_has_neither_a_node_controller_nor_a_second_name_server() -> None:
    single = Layout("single", 4, Path("/state"), control_plane_only=False)
    assert [component.name for component in after_objects(single)] == [pki.VOLUME_PROVISIONER]
    assert [component.name for component in after_objects(THREE)] == [pki.VOLUME_PROVISIONER, pki.NODE_CONTROLLER]
    copies = {
        layout.name: item.body["spec"]["replicas"]
        for layout in (single, THREE)
        for item in objects(layout, "image", forwards=True)
        if item.body["kind"] == "Deployment"
    }
    assert copies == {"single": 1, "three": 2}


def test_a_kubelet_is_restarted_when_its_configuration_changes(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path, tmp_path / "run", tmp_path / "logs", "/usr/bin:/bin", {1: Place((), "token")})
    before = Component("sleep", ("sleep", "600"), SocketHealth(tmp_path))
    supervisor.start(before)
    try:
        assert supervisor.is_current(before)
        assert not supervisor.is_current(
            Component("sleep", ("sleep", "600"), before.health, config="nodeLeaseDurationSeconds: 10")
        )
    finally:
        supervisor.stop(["sleep"])


def test_the_number_of_nodes_is_remembered(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = IndexAllocator(tmp_path / "all").allocate("state", state, lambda _: True, control_plane_only=False)
    assert first.nodes == 1
    extend(first, state, nodes=3)
    stored = read_allocation(state)
    assert stored == Allocation("state", first.index, control_plane_only=False, nodes=3)
    assert stored is not None
    assert extend(stored, state, ingress=True).nodes == 3
    assert layout_of(stored, state).nodes == 3
    fewer = with_nodes(stored, state, 2)
    assert read_allocation(state) == fewer
    assert [node.number for node in surplus(layout_of(fewer, state))] == list(range(3, 17))


def test_members_that_a_later_release_has_stored_are_ignored(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = IndexAllocator(tmp_path / "all").allocate("state", state, lambda _: True, control_plane_only=False)
    write_info(state, describe(layout_of(first, state)))
    for file, read in (("instance.json", read_allocation), ("info.json", read_info)):
        before = read(state)
        document = json.loads((state / file).read_text())
        (state / file).write_text(json.dumps(document | {"of_a_later_release": {"a": 1}}))
        assert read(state) == before


@pytest.mark.parametrize("number", [0, -1, 17])
def test_an_impossible_number_is_refused(tmp_path: Path, number: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 16"):
        LocalCluster("state", tmp_path / "state", nodes=number)


def test_a_control_plane_alone_has_no_nodes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no nodes"):
        LocalCluster("alone", tmp_path / "alone", control_plane_only=True, nodes=2)


def test_the_description_names_the_nodes(tmp_path: Path) -> None:
    info = describe(THREE)
    assert info.nodes == ("reside-three", "reside-three-2", "reside-three-3")
    write_info(tmp_path, info)
    assert read_info(tmp_path) == info


def test_nothing_exists_of_a_cluster_that_was_never_up() -> None:
    assert existing_nodes(Layout("never", 99, Path("/state"), control_plane_only=False, nodes=3)) == []


def kubernetes_node(name: str, *, ready: str = "True", taints: Any = None) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "resourceVersion": "7"},
        "spec": {"taints": taints} if taints else {},
        "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]},
    }


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
OURS = {"key": OUT_OF_SERVICE, "value": "ended", "effect": "NoExecute"}
OF_THE_ADMINISTRATOR = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}


def test_an_ended_node_that_does_not_answer_is_out_of_service() -> None:
    node = kubernetes_node("a", ready="Unknown", taints=[UNREACHABLE])
    assert decide([node, kubernetes_node("b")], {"a"}) == {"a": [UNREACHABLE, OURS]}


@pytest.mark.parametrize(
    ("ready", "ended", "taints"),
    [
        ("True", {"a"}, []),
        ("Unknown", set(), [UNREACHABLE]),
        ("Unknown", {"a"}, [UNREACHABLE, OURS]),
        ("True", set(), [OF_THE_ADMINISTRATOR]),
    ],
    ids=["not noticed yet", "only unreachable", "tainted", "tainted by an administrator"],
)
def test_nothing_changes(ready: str, ended: set[str], taints: list[Any]) -> None:
    assert decide([kubernetes_node("a", ready=ready, taints=taints)], ended) == {}


def test_a_node_that_runs_again_is_in_service() -> None:
    assert decide([kubernetes_node("a", ready="Unknown", taints=[OURS, UNREACHABLE])], set()) == {"a": [UNREACHABLE]}


class Nodes:
    """An API server with one node that does not answer."""

    def __init__(self) -> None:
        self.node = kubernetes_node("a", ready="Unknown", taints=[UNREACHABLE])
        self.requests: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request, and store the spec of a patch."""
        self.requests.append(request.method)
        if request.method == "GET":
            return httpx2.Response(200, json={"items": [self.node]})
        patch: dict[str, Any] = json.loads(request.content)
        assert patch["metadata"]["resourceVersion"] == self.node["metadata"]["resourceVersion"]
        self.node["spec"] = patch["spec"]
        return httpx2.Response(200, json=self.node)


def test_no_request_is_sent_while_all_nodes_run() -> None:
    server, ended = Nodes(), {"a"}
    client = httpx2.Client(base_url="https://api", transport=httpx2.MockTransport(server))
    controller = NodeController(client, lambda: set(ended))
    for _ in range(2):
        controller.reconcile()
    assert server.node["spec"]["taints"] == [UNREACHABLE, OURS]
    ended.clear()
    for _ in range(3):
        controller.reconcile()
    assert server.node["spec"]["taints"] == [UNREACHABLE]
    assert server.requests == ["GET", "PATCH", "GET", "GET", "PATCH"]


def test_a_node_has_ended_when_neither_its_kubelet_nor_a_pod_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    first = IndexAllocator(tmp_path / "all").allocate("state", state, lambda _: True, control_plane_only=False)
    layout = layout_of(extend(first, state, nodes=3), state)
    second = NodeLayout(layout, 2)
    monkeypatch.setattr(cgroups, "processes", lambda name: ["a pod"] if name == second.pods_cgroup else [])
    supervisor = Supervisor(state, layout.pids, layout.logs, "/usr/bin:/bin")
    health = control_plane(layout, find)[0].health
    supervisor.start(Component("kubelet-3", ("sleep", "600"), health))
    try:
        assert ended_nodes(state) == {"reside-state"}
    finally:
        supervisor.stop(["kubelet-3"])
    assert ended_nodes(state) == {"reside-state", "reside-state-3"}
