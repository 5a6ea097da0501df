"""The arguments of the local cluster's components."""

from pathlib import Path

import pytest
import yaml

from reside.local.addons import corefile, objects
from reside.local.components import Component, control_plane, stop_order
from reside.local.layout import Layout
from reside.local.network import comment, rules
from reside.local.node import after_objects, config_files, containerd_config, node
from reside.local.node_layout import first_node

FULL = Layout("full", 4, Path("/state"), control_plane_only=False)
ALONE = Layout("alone", 4, Path("/state"), control_plane_only=True)


def find(tool: str) -> Path:
    return Path("/tools") / tool


def everything(layout: Layout) -> list[Component]:
    node_components = [] if layout.control_plane_only else [*node(layout, find), *after_objects(layout)]
    return [*control_plane(layout, find), *node_components]


def option(component: Component, name: str) -> str:
    values = [argument.partition("=")[2] for argument in component.argv if argument.startswith(f"--{name}=")]
    assert len(values) == 1, f"{component.name} has --{name} {len(values)} times"
    return values[0]


def by_name(layout: Layout, name: str) -> Component:
    return next(component for component in everything(layout) if component.name == name)


@pytest.mark.parametrize("layout", [FULL, ALONE], ids=["full", "alone"])
def test_every_dependency_is_an_earlier_component(layout: Layout) -> None:
    seen: set[str] = set()
    for component in everything(layout):
        assert seen.issuperset(component.needs)
        seen.add(component.name)


@pytest.mark.parametrize("layout", [FULL, ALONE], ids=["full", "alone"])
def test_nothing_listens_on_every_interface(layout: Layout) -> None:
    text = " ".join(argument for component in everything(layout) for argument in component.argv)
    assert "0.0.0.0" not in text  # noqa: S104 - the very thing that is forbidden
    for component in everything(layout):
        if any(argument.startswith("--secure-port") for argument in component.argv):
            assert option(component, "bind-address") == layout.node_address


def test_a_control_plane_alone_is_on_loopback_only() -> None:
    assert option(by_name(ALONE, "kube-apiserver"), "bind-address") == "127.0.0.1"
    assert option(by_name(ALONE, "etcd"), "listen-client-urls").startswith("https://127.0.0.1:")


def test_the_advertised_address_is_never_loopback() -> None:
    assert not option(by_name(ALONE, "kube-apiserver"), "advertise-address").startswith("127.")


def test_only_a_control_plane_alone_disables_fsync() -> None:
    assert "--unsafe-no-fsync=true" in by_name(ALONE, "etcd").argv
    assert "--unsafe-no-fsync=true" not in by_name(FULL, "etcd").argv


def test_access_is_by_certificates_and_rbac() -> None:
    server = by_name(FULL, "kube-apiserver")
    assert option(server, "authorization-mode") == "Node,RBAC"
    assert option(server, "anonymous-auth") == "false"
    kubelet = yaml.safe_load(config_files(FULL, find, "s", [])[FULL.config / "kubelet.yaml"])
    assert kubelet["authentication"]["anonymous"] == {"enabled": False}
    assert kubelet["authorization"] == {"mode": "Webhook"}
    assert kubelet["address"] == FULL.node_address


def test_two_instances_share_no_path_port_group_or_interface() -> None:
    other = Layout("other", 5, Path("/other"), control_plane_only=False)
    for one, two in zip(everything(FULL), everything(other), strict=True):
        assert {
            argument for argument in one.argv if argument in two.argv and ("/state" in argument or "10." in argument)
        } == set()
    one, two = (containerd_config(first_node(layout), find("runc")) for layout in (FULL, other))
    assert {line for line in one.splitlines() if "/state" in line or "/run/" in line}.isdisjoint(two.splitlines())


def test_the_registry_signs_uploads_the_same_on_both_addresses_and_allows_deletion() -> None:
    files = config_files(FULL, find, "shared", [])
    loopback, bridge = (yaml.safe_load(files[FULL.config / f"registry-{at}.yaml"]) for at in ("loopback", "bridge"))
    assert loopback["http"]["addr"].startswith("127.0.0.1:")
    assert bridge["http"]["addr"].startswith(f"{FULL.host_address}:")
    assert {**loopback, "http": None} == {**bridge, "http": None}
    assert loopback["http"]["secret"] == bridge["http"]["secret"] == "shared"
    assert loopback["storage"]["delete"] == {"enabled": True}


def test_servers_stop_after_those_that_they_serve() -> None:
    assert stop_order(["etcd", "kubelet", "kube-apiserver", "kube-proxy"]) == [
        ["kubelet", "kube-proxy"],
        ["kube-apiserver"],
        ["etcd"],
    ]
    assert stop_order(["etcd"]) == [["etcd"]]


def test_every_packet_filter_rule_names_its_instance() -> None:
    assert all(comment(FULL) in rule.spec for rule in rules(FULL))


def test_dns_forwards_only_where_there_is_a_resolver() -> None:
    assert "forward ." in corefile(FULL, forwards=True)
    assert "forward ." not in corefile(FULL, forwards=False)


def test_objects_are_written_to_the_paths_of_their_names() -> None:
    for found in objects(FULL, "image", forwards=True):
        assert found.path.endswith(f"/{found.body['metadata']['name']}")


def test_the_storage_class_is_the_default_one() -> None:
    found = {item.body["kind"]: item.body for item in objects(FULL, "image", forwards=True)}["StorageClass"]
    assert found["metadata"]["name"] == "standard"
    assert found["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
