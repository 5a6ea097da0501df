"""Faults of a cluster that end a bootstrap at once, on a real API server: each error names the thing and the cure."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from lightkube.codecs import load_all_yaml
from lightkube.resources.core_v1 import ConfigMap, Namespace, ResourceQuota
from support.eventually import eventually

from reside.access.client import connect
from reside.access.target import Target
from reside.model.errors import InvalidInput, NotAllowed, NotReady, ResideError
from reside.seed import blocked, kubernetes, outcome, platform, preflight, settings, steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reside.local import ClusterInfo
    from reside.seed.settings import BootstrapSettings

pytestmark = pytest.mark.anyio
IMAGE = "registry.reside.internal/reside/x@sha256:" + "c" * 64


def bootstrap(cluster: ClusterInfo, namespace: str, **members: Any) -> BootstrapSettings:
    """Return the settings of a bootstrap of a namespace."""
    images = dict.fromkeys(("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd"), IMAGE)
    where = {"access": "direct", "kubeconfig": str(cluster.kubeconfig), "kube_context": cluster.context}
    return settings.parse({"namespace": namespace, "images": images, "deadline": 4, **where, **members}, "test")


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """Return the name of a namespace for the test, which does not exist."""
    return "fault-" + request.node.name.replace("_", "-").partition("[")[0][5:45].strip("-")


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"storage_class": "nowhere"}, r"StorageClass nowhere does not exist: set storageClass \(--storage-class\): "),
        ({}, r"there is no default StorageClass: set storageClass \(--storage-class\): "),
    ],
)
async def test_a_missing_storage_class(
    cluster: ClusterInfo, namespace: str, members: dict[str, Any], says: str
) -> None:
    found = bootstrap(cluster, namespace, **members)
    with pytest.raises(InvalidInput, match=says):
        await asyncio.to_thread(steps.namespace, found)
    async with connect(found.target) as client:
        record = (await client.get(ConfigMap, outcome.NAME)).data or {}
    assert record["result"] == "failed"
    assert "StorageClass" in record["error"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"ingress_class": "nowhere"}, r"IngressClass nowhere does not exist: set ingressClass \(--ingress-class\): "),
        ({}, "needs an ingress controller, and there is no default IngressClass: set ingressClass "),
    ],
)
async def test_a_domain_without_an_ingress_class(
    cluster: ClusterInfo, namespace: str, members: dict[str, Any], says: str
) -> None:
    domain = {"domain": "team.example.test", "cluster_issuer": "ca"}
    found = bootstrap(cluster, namespace, **domain, **members)
    async with connect(found.target) as client:
        with pytest.raises(InvalidInput, match=says):
            await preflight.check_ingress(client, found)
        annotated = bootstrap(cluster, namespace, **domain, ingress_annotations={"kubernetes.io/ingress.class": "own"})
        await preflight.check_ingress(client, annotated)


@pytest.mark.parametrize("skew", [-300, 300])
async def test_a_clock_that_is_five_minutes_off(cluster: ClusterInfo, skew: int) -> None:
    found = bootstrap(cluster, "default")
    side = "ahead of" if skew > 0 else "behind"
    async with connect(found.target) as client:
        with pytest.raises(
            InvalidInput, match=rf"machine is (29\d|30\d) s {side} that of the Kubernetes API.*timedatectl"
        ):
            await preflight.check_clock(client, lambda: time.time() + skew)
        await preflight.check_clock(client)


def with_token(cluster: ClusterInfo, folder: Path, namespace: str, rules: list[dict[str, Any]]) -> Path:
    """Return a kubeconfig of a service account with these rules."""
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        *platform._access("limited", namespace, rules),
    ]
    kubectl = ["kubectl", "--kubeconfig", str(cluster.kubeconfig)]
    subprocess.run([*kubectl, "apply", "-f", "-"], input=yaml.safe_dump_all(objects), text=True, check=True)
    token = subprocess.check_output([*kubectl, "-n", namespace, "create", "token", "limited"], text=True)
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"] = [{"name": user["name"], "user": {"token": token}} for user in document["users"]]
    file = folder / "limited.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


async def test_no_rights_in_the_namespace(cluster: ClusterInfo, namespace: str, tmp_path: Path) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "create"]}]
    limited = with_token(cluster, tmp_path, namespace, rules)
    found = bootstrap(cluster, namespace, kubeconfig=str(limited))
    with pytest.raises(NotAllowed) as refused:
        await asyncio.to_thread(steps.namespace, found)
    text = str(refused.value)
    assert "get, list, watch, create, update, patch, delete statefulsets" in text
    assert "list, watch, update, patch, delete configmaps; " in text
    assert f"in namespace {namespace}: ask an administrator for the rights of the Role `seed`" in text
    absent = bootstrap(cluster, f"{namespace}-absent", kubeconfig=str(limited))
    with pytest.raises(ResideError, match="absent"):
        await asyncio.to_thread(steps.namespace, absent)


async def test_the_rights_of_the_seed_are_enough_to_begin(cluster: ClusterInfo, namespace: str, tmp_path: Path) -> None:
    rules = [rule for each in platform.seed_access(namespace) if each["kind"] == "Role" for rule in each["rules"]]
    limited = with_token(cluster, tmp_path, namespace, rules)
    found = bootstrap(cluster, namespace, kubeconfig=str(limited))
    await asyncio.to_thread(steps.namespace, found)  # it may not read StorageClasses, so they are not checked


async def test_a_namespace_with_a_quota(cluster: ClusterInfo, namespace: str) -> None:
    """The controller can't create the pod of Jazz; once the quota is gone, the wait goes on."""
    found = bootstrap(cluster, namespace)
    quota = ResourceQuota.from_dict({"metadata": {"name": "tight"}, "spec": {"hard": {"pods": "0"}}})
    async with connect(found.target) as client:
        await kubernetes.ensure_namespace(client, namespace)
        await client.create(quota)

        async def counted() -> bool:
            status = (await client.get(ResourceQuota, "tight")).status
            return status is not None and (status.hard or {}).get("pods") == "0"

        await eventually("the quota", counted, within=60)
        for document in platform.storage(found):
            (body,) = load_all_yaml(json.dumps(document))
            await client.create(body)

        async def refused() -> str | None:
            return await blocked.refused_pods(client, "jazz")

        refusal = await eventually("the refused pod", refused, lambda found: found is not None, within=60)
        with pytest.raises(NotReady, match=r"jazz gets no pod: FailedCreate: exceeded quota: tight.*: raise the quota"):
            await kubernetes.wait_for_stateful_set(client, "jazz", 10)
        await client.delete(ResourceQuota, "tight")
        assert not await blocked.is_lasting(client, str(refusal))
        with pytest.raises(NotReady, match=r"jazz gets no pod: .*no storage class is set: create the StorageClass"):
            await kubernetes.wait_for_stateful_set(client, "jazz", 10)
        await client.delete(Namespace, namespace)


def certificate(name: str, issuer: x509.Certificate | None, signing: Any, key: Any) -> x509.Certificate:
    """Return a certificate that expired yesterday."""
    now = dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer.subject if issuer else subject)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(days=9)).not_valid_after(now - dt.timedelta(days=1))
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
    )
    return builder.sign(signing, hashes.SHA256())


def pem(key: Any) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


async def test_an_expired_client_certificate(cluster: ClusterInfo, tmp_path: Path) -> None:
    key, signer = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    expired = certificate("operator", None, signer, key).public_bytes(serialization.Encoding.PEM)
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    user = {
        "client-certificate-data": base64.b64encode(expired).decode(),
        "client-key-data": base64.b64encode(pem(key)).decode(),
    }
    document["users"] = [{"name": each["name"], "user": user} for each in document["users"]]
    file = tmp_path / "expired.yaml"
    file.write_text(yaml.safe_dump(document))
    with pytest.raises(
        InvalidInput, match=r"the client certificate of user .* expired on .* UTC: get a new kubeconfig"
    ):
        await asyncio.to_thread(steps.namespace, bootstrap(cluster, "default", kubeconfig=str(file)))


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Serve HTTPS with an expired certificate; yield the address and the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    expired = certificate("127.0.0.1", None, key, key).public_bytes(serialization.Encoding.PEM)
    (folder / "server.pem").write_bytes(expired + pem(key))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem")
    serving = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    serving.socket = context.wrap_socket(serving.socket, server_side=True)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"https://127.0.0.1:{serving.server_address[1]}", expired
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()


async def test_an_api_server_whose_certificate_has_expired(tmp_path: Path) -> None:
    with server(tmp_path) as (address, authority):
        cluster = {"server": address, "certificate-authority-data": base64.b64encode(authority).decode()}
        document = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(document))
        target = Target("default", "direct", str(file), None, 4.0)
        with pytest.raises(NotReady, match="its certificate has expired: renew it"):
            async with connect(target) as client:
                await client.get(Namespace, "default")
