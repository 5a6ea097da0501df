"""Traefik and cert-manager on a local cluster: components, objects, certificates, and that they are remembered."""

import dataclasses
import json
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from typer.testing import CliRunner

from reside.local import ClusterInfo, LocalCluster, Toolchain, ToolMissingError, UsageError, pki
from reside.local.allocation import INSTANCE_FILE, Allocation, IndexAllocator, extend, read_allocation
from reside.local.cli import app
from reside.local.info import describe, write_info
from reside.local.ingress import WEBHOOK_PORT, config_files, ingress
from reside.local.ingress_objects import objects, webhooks
from reside.local.layout import Layout
from reside.local.toolchain import RESOURCE_FILES
from tools.builder.units import CERT_MANAGER_RESOURCES, GATEWAY_RESOURCES, UNITS


def find(tool: str) -> Path:
    return Path("/tools") / tool


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout("ingress", 4, tmp_path, control_plane_only=False, ingress=True)
    pki.ensure(layout.pki, pki.certificates(layout), signers=pki.authorities(layout))
    return layout


def test_the_toolchain_has_each_resource_definition_that_up_installs() -> None:
    unit = next(unit for unit in UNITS if unit.name == "cert-manager")
    assert RESOURCE_FILES == CERT_MANAGER_RESOURCES + GATEWAY_RESOURCES == tuple(unit.copies)


def test_every_address_is_the_nodes_own(layout: Layout) -> None:
    traefik = next(component for component in ingress(layout, find) if component.name == "traefik")
    addresses = [argument.partition("=")[2] for argument in traefik.argv if ".address=" in argument]
    assert len(addresses) == 2
    assert all(address.startswith(f"{layout.node_address}:") for address in addresses)
    assert all(component.node == 1 for component in ingress(layout, find))
    controller = yaml.safe_load(config_files(layout)[layout.config / "cert-manager.yaml"])
    assert controller["healthzListenAddress"].startswith(f"{layout.node_address}:")


def test_cert_manager_starts_after_its_webhook(layout: Layout) -> None:
    needs = {component.name: component.needs for component in ingress(layout, find)}
    assert needs["cert-manager"] == ("cert-manager-webhook",)


def test_the_webhook_is_reached_by_the_address_in_its_certificate(layout: Layout) -> None:
    certificate = x509.load_pem_x509_certificate(
        pki.certificate_path(layout.pki, pki.CERT_MANAGER_WEBHOOK).read_bytes()
    )
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name) for name in names.get_values_for_type(x509.IPAddress)] == [layout.node_address]
    for webhook in webhooks(layout):
        url = webhook.body["webhooks"][0]["clientConfig"]["url"]
        assert url.startswith(f"https://{layout.node_address}:{WEBHOOK_PORT}/")


def test_no_component_of_the_ingress_is_an_administrator(layout: Layout) -> None:
    roles = {item.body["metadata"]["name"]: item.body for item in objects(layout) if item.body["kind"] == "ClusterRole"}
    assert set(roles) == {"reside:traefik", "reside:cert-manager"}
    for role in roles.values():
        assert all(rule["apiGroups"] != ["*"] for rule in role["rules"])
    write = [rule for rule in roles["reside:traefik"]["rules"] if set(rule["verbs"]) - {"get", "list", "watch"}]
    assert all(resource.endswith("/status") for rule in write for resource in rule["resources"])
    clients = {item.name: item.organization for item in pki.certificates(layout) if item.client}
    assert clients["traefik"] is clients["cert-manager"] is None


def test_the_authority_of_domains_is_not_that_of_kubernetes(layout: Layout) -> None:
    domains, kubernetes = (
        x509.load_pem_x509_certificate(pki.certificate_path(layout.pki, name).read_bytes())
        for name in (pki.INGRESS_CA, pki.KUBERNETES_CA)
    )
    assert domains.public_key() != kubernetes.public_key()
    assert stat.S_IMODE(pki.key_path(layout.pki, pki.INGRESS_CA).stat().st_mode) == 0o600


def test_without_an_ingress_there_is_no_third_authority(layout: Layout) -> None:
    without = dataclasses.replace(layout, ingress=False)
    assert pki.INGRESS_CA not in pki.authorities(without)
    assert "traefik" not in {certificate.name for certificate in pki.certificates(without)}
    assert describe(without).ingress_authority is None


def test_the_description_names_address_issuer_and_authority(layout: Layout) -> None:
    info = describe(layout)
    assert info.ingress_address == layout.node_address
    assert info.ingress_authority == pki.certificate_path(layout.pki, pki.INGRESS_CA)
    assert ClusterInfo.from_json(json.loads(json.dumps(info.to_json()))) == info


def test_a_description_of_an_earlier_version_is_read(layout: Layout) -> None:
    earlier = {name: value for name, value in describe(layout).to_json().items() if not name.startswith("ingress_")}
    assert ClusterInfo.from_json(earlier).ingress_address is None


def test_an_ingress_is_remembered(tmp_path: Path) -> None:
    state = tmp_path / "state"
    allocator = IndexAllocator(tmp_path / "allocations")
    first = allocator.allocate("state", state, lambda _: True, control_plane_only=False)
    assert not first.ingress
    added = extend(first, state, ingress=True)
    assert added == Allocation("state", first.index, control_plane_only=False, ingress=True)
    assert read_allocation(state) == added
    assert allocator.allocate("state", state, lambda _: True, control_plane_only=False) == added


def test_status_names_the_authority(layout: Layout) -> None:
    write_info(layout.state, describe(layout))
    stored = Allocation(layout.name, layout.index, control_plane_only=False, ingress=True)
    (layout.state / INSTANCE_FILE).write_text(json.dumps(dataclasses.asdict(stored)))
    shown = CliRunner().invoke(app, ["status", "--name", layout.name, "--state", str(layout.state)])
    assert shown.exit_code == 1, "nothing runs"
    assert "cert-manager-webhook" in shown.output
    assert f"Its certificate authority: {pki.certificate_path(layout.pki, pki.INGRESS_CA)}" in shown.output


def test_a_control_plane_alone_has_no_ingress(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no pods"):
        LocalCluster("alone", tmp_path / "alone", control_plane_only=True, ingress=True)


def test_a_missing_traefik_is_built_by_make_alltools(tmp_path: Path) -> None:
    with pytest.raises(ToolMissingError, match="make alltools"):
        Toolchain(str(tmp_path)).find("traefik")
