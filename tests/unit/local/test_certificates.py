"""The certificates of a local cluster."""

import datetime as dt
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reside.local.layout import Layout
from reside.local.pki import ETCD_CA, KUBERNETES_CA, certificate_path, certificates, ensure, key_path

CERTIFICATES = certificates(Layout("pki", 2, Path("/state"), control_plane_only=False))


def read(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate_path(folder, name).read_bytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki") / "pki"
    ensure(folder, CERTIFICATES)
    return folder


def test_every_certificate_is_of_its_authority(folder: Path) -> None:
    for certificate in CERTIFICATES:
        read(folder, certificate.name).verify_directly_issued_by(read(folder, certificate.authority))


def test_no_kubernetes_certificate_gives_access_to_etcd(folder: Path) -> None:
    assert {c.name for c in CERTIFICATES if c.authority == ETCD_CA} == {"etcd", "etcd-client"}
    assert read(folder, ETCD_CA).public_key() != read(folder, KUBERNETES_CA).public_key()


def test_the_kubelet_is_its_node_only(folder: Path) -> None:
    subject = read(folder, "kubelet").subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:reside-pki"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:nodes"


def test_only_the_administrator_and_the_api_server_are_in_the_masters_group() -> None:
    assert {c.name for c in CERTIFICATES if c.organization == "system:masters"} == {"admin", "kubelet-client"}


def test_client_certificates_are_not_valid_for_servers(folder: Path) -> None:
    usage = read(folder, "admin").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_keys_are_for_the_owner_only(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_time_writes_nothing(folder: Path) -> None:
    assert ensure(folder, CERTIFICATES) == []


def test_a_lost_key_is_replaced_and_nothing_else(folder: Path) -> None:
    key_path(folder, "admin").unlink()
    assert ensure(folder, CERTIFICATES) == ["admin"]


def test_an_incomplete_certificate_is_replaced(folder: Path) -> None:
    path = certificate_path(folder, "kubelet")
    path.write_bytes(path.read_bytes()[:100])
    assert ensure(folder, CERTIFICATES) == ["kubelet"]


def test_a_server_with_another_address_gets_a_new_certificate(folder: Path) -> None:
    elsewhere = certificates(Layout("pki", 3, Path("/state"), control_plane_only=False))
    written = ensure(folder, elsewhere)
    assert "kube-apiserver" in written
    assert "admin" not in written
    ensure(folder, CERTIFICATES)


def test_a_lost_authority_replaces_all_that_it_issued(folder: Path) -> None:
    key_path(folder, ETCD_CA).unlink()
    assert ensure(folder, CERTIFICATES) == [ETCD_CA, "etcd", "etcd-client"]


def test_a_certificate_that_expires_soon_is_replaced(folder: Path) -> None:
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=3640)
    assert set(ensure(folder, CERTIFICATES, later)) == {KUBERNETES_CA, ETCD_CA, *(c.name for c in CERTIFICATES)}
