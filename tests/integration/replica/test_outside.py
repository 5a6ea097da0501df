"""Jazz and a replica at one domain: the Ingresses as they are rendered, a real Traefik, and certificates verified.

The Services are names of this machine, since a control plane alone has no pods.
"""

from __future__ import annotations

import base64
import ssl
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import pytest
import yaml
from support.eventually import eventually
from support.replicas import GREETING, endpoint_of, greeting_contract
from support.sentinel import new_namespace
from support.traefik import traefik

from reside.alpha.stacks.render import replica_ingress
from reside.cli import config
from reside.cli.session import jazz_of, replica_of
from reside.jazz import JazzUnavailable, Node
from reside.local import Toolchain
from reside.local.pki import KUBERNETES_CA, Certificate, certificate_path, ensure, key_path
from reside.model.cluster import ClusterSettings
from reside.model.constants import DOMAIN_CERTIFICATE
from reside.model.endpoints import READINESS_PATH, account_path, replica_path, rpc_path
from reside.model.errors import NotReady
from reside.replica import Call, Replica
from reside.replica.client import call_method
from reside.seed import platform

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.replicas import Identity, Servers

    from reside.jazz import Credentials
    from reside.local import ClusterInfo
    from reside.replica import Context

pytestmark = pytest.mark.anyio
DOMAIN: Final = "localhost"
"""A name of this machine on every machine."""
JAZZ: Final = "jazz"
GREETER: Final = "greeter"
UNKNOWN: Final = "404 page not found\n"
"""What Traefik itself says of a path that no Ingress has."""


@dataclass(frozen=True)
class Outside:
    """A served domain, as a client outside has it in its configuration."""

    cluster: config.Cluster
    authority: Path
    greeter: Context

    def client(self, authority: Path | None = None) -> httpx2.AsyncClient:
        """Return an HTTP client that trusts one authority; that of the domain by default."""
        context = ssl.create_default_context(cafile=str(authority or self.authority))
        return httpx2.AsyncClient(verify=context, trust_env=False)


def external_service(name: str, namespace: str, port: int) -> dict[str, Any]:
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def served_at(ingress: dict[str, Any], port: int) -> dict[str, Any]:
    """Return an Ingress with the port of the server in this test."""
    for rule in ingress["spec"]["rules"]:
        for path in rule["http"]["paths"]:
            path["backend"]["service"]["port"] = {"number": port}
    return ingress


def tls_secret(namespace: str, folder: Path) -> dict[str, Any]:
    """Return the Secret that cert-manager would write for the domain."""
    names = {"tls.crt": certificate_path(folder, DOMAIN), "tls.key": key_path(folder, DOMAIN)}
    data = {key: base64.b64encode(path.read_bytes()).decode() for key, path in names.items()}
    meta = {"name": DOMAIN_CERTIFICATE, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "kubernetes.io/tls", "data": data}


def kubectl(info: ClusterInfo, *arguments: str, text: str | None = None) -> None:
    command = [str(Toolchain.default().find("kubectl")), "--kubeconfig", str(info.kubeconfig), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def build_greeter() -> Replica:
    replica = Replica(greeting_contract())

    @replica.method(GREETING, "whoami")
    async def whoami(call: Call) -> str:
        return call.account

    return replica


@pytest.fixture
async def outside(cluster: ClusterInfo, servers: Servers, identity: Identity, tmp_path: Path) -> AsyncIterator[Outside]:
    namespace = new_namespace(cluster)
    ensure(tmp_path, [Certificate(DOMAIN, DOMAIN, names=(DOMAIN,), server=True, client=False)])
    settings = ClusterSettings(namespace=namespace, domain=DOMAIN, cluster_issuer="ca", ingress_class=namespace)
    async with build_greeter().start(identity.settings) as greeter:
        ports = {
            JAZZ: urlsplit(servers.jazz.url).port or 0,
            GREETER: urlsplit(endpoint_of(greeter)).port or 0,
        }
        ingresses = {JAZZ: platform.ingresses(settings)[0], GREETER: replica_ingress(GREETER, settings)}
        spec = {"controller": "traefik.io/ingress-controller"}
        objects: list[dict[str, Any]] = [
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "IngressClass",
                "metadata": {"name": namespace},
                "spec": spec,
            },
            tls_secret(namespace, tmp_path),
        ]
        for name, port in ports.items():
            objects += [
                external_service(name, namespace, port),
                served_at(ingresses[name], port),
            ]
        kubectl(cluster, "apply", "-f", "-", text=yaml.safe_dump_all(objects))
        try:
            with traefik(cluster, namespace, namespace, tmp_path) as port:
                reached = config.Cluster(
                    name="far",
                    endpoint=f"https://{DOMAIN}:{port}",
                    alpha_replica_id=greeter.node.account_id,
                    access="endpoint",
                )
                found = Outside(reached, certificate_path(tmp_path, KUBERNETES_CA), greeter)
                await until_served(found)
                yield found
        finally:
            kubectl(cluster, "delete", "ingressclass", namespace)


async def until_served(outside: Outside) -> None:
    """Wait until Traefik serves both Ingresses with the certificate of the domain."""
    paths = ("/", f"{replica_path(GREETER)}rpc/a/b")

    async def answers() -> list[str]:
        try:
            async with outside.client() as http:
                return [(await http.get(f"{outside.cluster.endpoint}{path}")).text for path in paths]
        except httpx2.TransportError:
            return []

    await eventually("both Ingresses", answers, lambda found: bool(found) and UNKNOWN not in found, within=60)


async def test_jazz_and_methods_are_reached_by_the_domain_alone(
    outside: Outside, client: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(outside.authority))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    async with jazz_of(outside.cluster) as url, replica_of(outside.cluster, GREETER) as endpoint:
        assert url.startswith("wss://")
        async with Node(url, client) as node:
            await node.register("outside")
            written = node.create_group().create_map({"text": "from outside"})
            await node.flush()
            profile = await (await node.load_account(outside.greeter.node.account_id)).load_profile()
            assert profile.get("name") == GREETER
        async with Node(url, client) as node:
            assert (await node.load_map(written.id)).get("text") == "from outside"
        async with outside.client() as http:
            told = await http.get(f"{endpoint}{account_path(GREETER)}")
            assert told.json() == {"account": outside.greeter.node.account_id}
            caller = await call_method(
                http,
                client,
                endpoint=endpoint,
                receiver=outside.greeter.node.account_id,
                path=rpc_path(GREETER, GREETING, "whoami"),
                body={},
            )
        assert caller == client.account_id


async def test_a_certificate_of_another_authority_is_refused(
    outside: Outside, client: Credentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure(tmp_path / "other", [Certificate("other", "other")])
    other = certificate_path(tmp_path / "other", KUBERNETES_CA)
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    async with jazz_of(outside.cluster) as url, outside.client(other) as http:
        with pytest.raises(JazzUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            async with Node(url, client, connect_timeout=3):
                pass
        with pytest.raises(NotReady, match="CERTIFICATE_VERIFY_FAILED"):
            await call_method(
                http,
                client,
                endpoint=str(outside.cluster.endpoint),
                receiver=outside.greeter.node.account_id,
                path=rpc_path(GREETER, GREETING, "whoami"),
                body={},
                within_s=1,
            )


async def test_nothing_else_is_served_at_the_domain(outside: Outside) -> None:
    async with outside.client() as http:
        for path in ("/healthz", "/metrics", READINESS_PATH, "/replicas/other/"):
            assert (await http.get(f"{outside.cluster.endpoint}{path}")).text == UNKNOWN
