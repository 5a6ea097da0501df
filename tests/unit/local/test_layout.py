"""The addresses and folders of local clusters."""

import ipaddress
from itertools import combinations
from pathlib import Path

import pytest

from reside.local import UsageError
from reside.local.info import ClusterInfo, describe, read_info, write_info
from reside.local.layout import INDEXES, Layout, check_name
from reside.local.node_layout import NODES, NodeLayout

STATE = Path("/state")


def layout(index: int, *, alone: bool = False) -> Layout:
    return Layout("name", index, STATE, alone)


def test_networks_of_all_numbers_are_private_and_disjoint() -> None:
    networks = [ipaddress.ip_network(layout(index).network) for index in INDEXES]
    assert all(network.is_private for network in networks)
    assert not any(one.overlaps(other) for one, other in combinations(networks, 2))


@pytest.mark.parametrize("index", [INDEXES.start, 7, INDEXES.stop - 1])
def test_ranges_of_one_number_are_disjoint_and_inside_its_network(index: int) -> None:
    it = layout(index)
    every = [NodeLayout(it, number) for number in NODES]
    pods, addresses = [node.pod_range for node in every], [node.address for node in every]
    names = (*pods, it.service_range, f"{it.host_address}/32", *(f"{address}/32" for address in addresses))
    parts = [ipaddress.ip_network(part) for part in names]
    assert all(part.subnet_of(ipaddress.ip_network(it.network)) for part in parts)  # type: ignore[arg-type]
    assert not any(one.overlaps(other) for one, other in combinations(parts, 2))


def test_addresses_lie_in_their_ranges() -> None:
    it = layout(3)
    services = ipaddress.ip_network(it.service_range)
    assert ipaddress.ip_address(it.api_service_address) == services[1]
    assert ipaddress.ip_address(it.dns_address) in services
    for node in (NodeLayout(it, number) for number in NODES):
        assert ipaddress.ip_address(node.pod_gateway) in ipaddress.ip_network(node.pod_range)


def test_loopback_ports_are_never_shared() -> None:
    ports = [port for index in INDEXES for alone in (True, False) for port in layout(index, alone=alone).loopback_ports]
    assert len(ports) == len(set(ports))
    assert all(1024 < port < 32768 for port in ports), "below the ports that the system gives out by itself"


def test_interface_names_fit_the_kernel() -> None:
    assert all(len(layout(index).link) <= 15 for index in INDEXES)


def test_a_socket_path_fits_however_long_the_state_folder_is_named() -> None:
    it = Layout("n" * 32, 99, Path("/very/long" * 30), control_plane_only=False)
    longest = "device-plugins/kubelet.sock"
    for node in (NodeLayout(it, number) for number in NODES):
        assert len(str(node.containerd_socket)) < 108
        assert len(str(node.kubelet_root / longest)) < 108


@pytest.mark.parametrize("name", ["default", "a", "e2e-1", "x" * 32])
def test_valid_names_are_accepted(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "Upper", "-a", "a-", "a b", "../up", "x" * 33, "a\n"])
def test_invalid_names_are_refused_with_the_rule(name: str) -> None:
    with pytest.raises(UsageError, match="lower-case letters"):
        check_name(name)


@pytest.mark.parametrize("alone", [True, False])
def test_the_description_survives_its_file(tmp_path: Path, alone: bool) -> None:
    info = describe(layout(1, alone=alone))
    write_info(tmp_path, info)
    assert read_info(tmp_path) == info
    assert (info.registry_loopback is None) is alone


def test_a_folder_without_a_description_has_none(tmp_path: Path) -> None:
    assert read_info(tmp_path) is None


def test_the_description_names_no_port_of_the_registry_in_images() -> None:
    info: ClusterInfo = describe(layout(0))
    assert info.registry_host == "registry.reside.internal"
