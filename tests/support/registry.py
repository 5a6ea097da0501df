"""A real registry (Debian's docker-registry) on a free loopback port."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.eventually import eventually_sync
from support.ports import free_port

from reside.common.tls import authorities_with, trusted_authorities
from reside.local.info import INFO_FILE, ClusterInfo

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

NAME = "registry.reside.internal"
USER = "robot"
PASSWORD = "c0rrect-horse"
_HTPASSWD = f"{USER}:$2b$04$Y86WF5Hr8jBBUTvzZ.lY6OgIqDtk4Nf3/a.jr/7fhSZ4HB0.3DppK\n"
"""`PASSWORD` hashed by bcrypt, the only method that the registry accepts."""
_DEADLINE = 120.0  # seconds until the registry must respond


@dataclass(frozen=True)
class Registry:
    """A running registry; `port` is on 127.0.0.1."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        """Host and port for pushes with Docker, which allows loopback without TLS."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Plain HTTP address."""
        return f"http://{self.address}"

    @property
    def mirrors(self) -> dict[str, str]:
        """The client setting that maps ReSide's registry name to this registry."""
        return {NAME: self.url}

    def write_local_cluster(self, state: Path) -> None:
        """Write the description of a local cluster that has this registry, and nothing else, to its state folder."""
        info = ClusterInfo(
            name=state.name,
            kubeconfig=state / "kubeconfig",
            context="none",
            api_url="https://127.0.0.1:1",
            bridge_address=None,
            service_range="10.0.0.0/24",
            registry_host=NAME,
            registry_loopback=self.address,
            registry_bridge=None,
        )
        state.mkdir(parents=True)
        (state / INFO_FILE).write_text(json.dumps(info.to_json()))


@dataclass(frozen=True)
class Place:
    """Where a private registry runs.

    Attributes:
        address: the address on which it listens.
        name: the name or address of its certificate.
        command: the beginning of its command, which enters a namespace.
        port: its port; 0 for a free one of this machine.
        images: folder with images that it serves and does not change; None: it stores images of its own.
    """

    address: str = "127.0.0.1"
    name: str = "localhost"
    command: tuple[str, ...] = ()
    port: int = 0
    images: Path | None = None


@dataclass(frozen=True)
class PrivateRegistry:
    """A running registry with TLS by its own authority, which requires `USER` and `PASSWORD`.

    Attributes:
        host: `<name>:<port>`, its name in image references.
        authority: PEM document with its certificate authority.
    """

    host: str
    authority: str
    process: subprocess.Popen[bytes]

    @property
    def login(self) -> str:
        """A Docker configuration with the password, as text."""
        both = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return json.dumps({"auths": {self.host: {"auth": both}}})


@contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """Run a registry that stores its images in `folder`; another run with the same folder has them, too."""
    port = free_port()
    with _running(folder, port, {}) as process:
        _await_answer(f"http://127.0.0.1:{port}", trusted_authorities(), process)
        yield Registry(port, process)


@contextmanager
def private_registry(folder: Path, realm: str | None = None, place: Place | None = None) -> Iterator[PrivateRegistry]:
    """Run a registry with a password and a certificate of its own authority; on loopback unless a place is named.

    With a `realm`, the URL of a token server, it asks for tokens that are signed with its key (`tls.key`).
    """
    where = place or Place()
    port = where.port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    authority = _issue_certificate(folder, where.name)
    (folder / "htpasswd").write_text(_HTPASSWD)
    (folder / "ca.pem").write_text(authority)
    token = {"realm": realm, "service": "test", "issuer": "tokens", "rootcertbundle": str(folder / "ca.pem")}
    basic = {"realm": "test", "path": str(folder / "htpasswd")}
    secured: dict[str, dict[str, object]] = {
        "auth": {"htpasswd": basic} if realm is None else {"token": token},
        "http": {
            "addr": f"{where.address}:{port}",
            "tls": {"certificate": str(folder / "tls.crt"), "key": str(folder / "tls.key")},
        },
    }
    if where.images is not None:
        secured["storage"] = {
            "filesystem": {"rootdirectory": str(where.images)},
            "maintenance": {"readonly": {"enabled": True}},
        }
    with _running(folder, port, secured, where.command) as process:
        _await_answer(f"https://{where.name}:{port}", authorities_with(authority), process)
        yield PrivateRegistry(f"{where.name}:{port}", authority, process)


@contextmanager
def _running(
    folder: Path, port: int, more: dict[str, dict[str, object]], prefix: tuple[str, ...] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    binary = shutil.which("docker-registry")
    assert binary is not None, "docker-registry is missing: apt-get install docker-registry"
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yml"
    settings = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        **more,
        "http": {"addr": f"127.0.0.1:{port}", **more.get("http", {})},
    }
    config.write_text(yaml.safe_dump(settings))
    with (folder / "registry.log").open("ab") as log:
        command = [*prefix, binary, "serve", str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def authority() -> str:
    """Return a PEM document with a new certificate authority."""
    with tempfile.TemporaryDirectory() as folder:
        return _issue_certificate(Path(folder), "localhost")


def _issue_certificate(folder: Path, name: str) -> str:
    """Write a certificate for a name or an address, and its key; return its authority."""
    now = dt.datetime.now(dt.UTC)
    keys = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry authority")])
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    identifier = x509.SubjectKeyIdentifier.from_public_key(keys[0].public_key())
    found = []
    for subject, key in ((root, keys[0]), (own, keys[1])):
        builder = x509.CertificateBuilder(root, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - dt.timedelta(hours=1)).not_valid_after(now + dt.timedelta(days=2))
        builder = builder.add_extension(x509.BasicConstraints(ca=subject is root, path_length=None), critical=True)
        if subject is root:
            builder = builder.add_extension(identifier, critical=False)
        else:
            above = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
            builder = builder.add_extension(above, critical=False)
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(name)]), critical=False)
        found.append(builder.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / "tls.crt").write_bytes(found[1])
    (folder / "tls.key").write_bytes(
        keys[1].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return found[0].decode()


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _await_answer(url: str, verify: ssl.SSLContext, process: subprocess.Popen[bytes]) -> None:
    def answer() -> str:
        assert process.poll() is None, f"docker-registry ended with {process.returncode}: see its log"
        try:
            httpx2.get(f"{url}/v2/", timeout=5, verify=verify, trust_env=False)
        except httpx2.TransportError as error:
            return str(error) or type(error).__name__
        return ""

    eventually_sync("an answer of docker-registry", answer, lambda error: not error, within=_DEADLINE, show=str)
