"""The certificate authorities (CAs) of a local cluster, and all certificates that they issue.

There are two CAs, one for Kubernetes and one for etcd, so that a Kubernetes client can't connect to etcd. A local
cluster with an ingress controller has a third one, with which cert-manager signs the certificates of domains.
`certificates` returns the complete list as data; `ensure` writes only what is missing, wrong or about to expire.
Keys are files with mode 0600. Certificates are valid for ten years, like the CAs: the cluster is local, and a shorter
time would not protect it, because the keys of the CAs are in the same folder.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reside.common.files import write_private
from reside.local.layout import CLUSTER_DOMAIN, Layout
from reside.local.node_controller import USER as NODE_CONTROLLER_USER
from reside.local.node_layout import NodeLayout, nodes
from reside.local.volumes import USER

KUBERNETES_CA = "ca"
ETCD_CA = "etcd-ca"
INGRESS_CA = "ingress-ca"
SERVICE_ACCOUNT_KEY = "service-accounts"
VOLUME_PROVISIONER = "volume-provisioner"
NODE_CONTROLLER = "node-controller"
TRAEFIK = "traefik"
CERT_MANAGER = "cert-manager"
CERT_MANAGER_WEBHOOK = "cert-manager-webhook"
_LIFETIME = dt.timedelta(days=3650)
_RENEW_BEFORE = dt.timedelta(days=30)
_BACKDATE = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Certificate:
    """One certificate to issue.

    Args:
        name: file name without extension.
        common_name: common name of the subject; for a client of Kubernetes, the user.
        organization: organization of the subject; for a client of Kubernetes, the user's group.
        names: DNS names and IP addresses of a server.
        authority: name of the CA that issues it.
        server: whether a server may use it.
        client: whether a client may use it.
    """

    name: str
    common_name: str
    organization: str | None = None
    names: tuple[str, ...] = ()
    authority: str = KUBERNETES_CA
    server: bool = False
    client: bool = True


def certificates(layout: Layout) -> list[Certificate]:
    """Return every certificate that a local cluster needs."""
    api_names = (
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{CLUSTER_DOMAIN}",
        layout.node_address,
        layout.api_service_address,
        "127.0.0.1",
    )
    return [
        Certificate("etcd", "etcd", names=(layout.node_address,), authority=ETCD_CA, server=True),
        Certificate("etcd-client", "kube-apiserver", authority=ETCD_CA),
        Certificate("kube-apiserver", "kube-apiserver", names=api_names, server=True, client=False),
        Certificate("kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
        Certificate("admin", "reside-admin", "system:masters"),
        _component("kube-controller-manager", layout),
        _component("kube-scheduler", layout),
        Certificate("kube-proxy", "system:kube-proxy"),
        Certificate(VOLUME_PROVISIONER, USER),
        *(_kubelet(node) for node in nodes(layout)),
        *([Certificate(NODE_CONTROLLER, NODE_CONTROLLER_USER)] if layout.nodes > 1 else ()),
        *(_ingress(layout) if layout.ingress else ()),
    ]


def authorities(layout: Layout) -> tuple[str, ...]:
    """Return the names of the CAs of a local cluster."""
    return (KUBERNETES_CA, ETCD_CA, INGRESS_CA) if layout.ingress else (KUBERNETES_CA, ETCD_CA)


def _ingress(layout: Layout) -> list[Certificate]:
    names = (layout.node_address,)
    return [
        Certificate(TRAEFIK, f"reside:{TRAEFIK}"),
        Certificate(CERT_MANAGER, f"reside:{CERT_MANAGER}"),
        Certificate(CERT_MANAGER_WEBHOOK, CERT_MANAGER_WEBHOOK, names=names, server=True, client=False),
    ]


def _kubelet(node: NodeLayout) -> Certificate:
    names = (node.name, node.address)
    user = f"system:node:{node.name}"
    return Certificate(node.component("kubelet"), user, "system:nodes", names=names, server=True)


def _component(name: str, layout: Layout) -> Certificate:
    return Certificate(name, f"system:{name}", names=(layout.node_address,), server=True)


def certificate_path(folder: Path, name: str) -> Path:
    """Return the path of a certificate."""
    return folder / f"{name}.crt"


def key_path(folder: Path, name: str) -> Path:
    """Return the path of a private key."""
    return folder / f"{name}.key"


def ensure(
    folder: Path,
    required: Sequence[Certificate],
    now: dt.datetime | None = None,
    signers: Sequence[str] = (KUBERNETES_CA, ETCD_CA),
) -> list[str]:
    """Write the CAs, certificates and keys that are missing, wrong or about to expire.

    Args:
        folder: folder of the files; created with mode 0700.
        required: the required certificates.
        now: the current time; read from the clock if None.
        signers: names of the CAs.

    Returns:
        the names of the certificates and keys that were written.
    """
    now = now or dt.datetime.now(dt.UTC)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    written: list[str] = []
    loaded = {}
    for name in signers:
        if not _is_valid_pair(folder, name, now):
            _write_authority(folder, name, now)
            written.append(name)
        loaded[name] = (_read_certificate(folder, name), _read_key(folder, name))
    for certificate in required:
        issuer, issuer_key = loaded[certificate.authority]
        if _is_valid_pair(folder, certificate.name, now) and _matches(
            _read_certificate(folder, certificate.name), certificate, issuer
        ):
            continue
        _write_certificate(folder, certificate, issuer, issuer_key, now)
        written.append(certificate.name)
    if not (key_path(folder, SERVICE_ACCOUNT_KEY).exists() and _public_path(folder).exists()):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(_public_path(folder), key.public_key().public_bytes(*_PUBLIC_FORM))
        _write_key(folder, SERVICE_ACCOUNT_KEY, key)
        written.append(SERVICE_ACCOUNT_KEY)
    return written


_PUBLIC_FORM = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _public_path(folder: Path) -> Path:
    return folder / f"{SERVICE_ACCOUNT_KEY}.pub"


def _write_key(folder: Path, name: str, key: ec.EllipticCurvePrivateKey) -> None:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    write_private(
        key_path(folder, name), key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )


def _read_key(folder: Path, name: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(key_path(folder, name).read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{key_path(folder, name)} is no elliptic-curve key")
    return key


def _read_certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate_path(folder, name).read_bytes())


def _is_valid_pair(folder: Path, name: str, now: dt.datetime) -> bool:
    """Return whether key and certificate exist, are readable, match and do not expire soon."""
    try:
        certificate, key = _read_certificate(folder, name), _read_key(folder, name)
    except (FileNotFoundError, ValueError, TypeError):
        return False  # missing or partially written: write it again
    if certificate.public_key() != key.public_key():
        return False
    return certificate.not_valid_after_utc - _RENEW_BEFORE > now


def _matches(found: x509.Certificate, required: Certificate, issuer: x509.Certificate) -> bool:
    if found.issuer != issuer.subject or found.subject != _subject(required.common_name, required.organization):
        return False
    try:
        found.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False  # issued by an older CA, or with another type of key
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value if required.names else None
    return names is None or names == _alternative_names(required.names)


def _subject(common_name: str, organization: str | None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _alternative_names(names: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(name) for name in names])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _write_authority(folder: Path, name: str, now: dt.datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"reside-local-{name}", None)
    certificate = (
        _builder(subject, key, now)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_key(folder, name, key)
    write_private(certificate_path(folder, name), certificate.public_bytes(serialization.Encoding.PEM))


def _write_certificate(
    folder: Path,
    required: Certificate,
    issuer: x509.Certificate,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: dt.datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    usages = []
    if required.server:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
    if required.client:
        usages.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    builder = (
        _builder(_subject(required.common_name, required.organization), key, now)
        .issuer_name(issuer.subject)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    if required.names:
        builder = builder.add_extension(_alternative_names(required.names), critical=False)
    _write_key(folder, required.name, key)
    write_private(
        certificate_path(folder, required.name),
        builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
    )
