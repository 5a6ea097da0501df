"""Options of the commands that bootstrap a cluster or print the objects that bootstrap it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path  # typer reads the annotations when the program starts
from typing import Annotated, Any

import typer

from reside.build.registries import read_authority
from reside.cli import project
from reside.cli.registry_login import read_login
from reside.local import LocalCluster, NoSuchClusterError
from reside.model.errors import InvalidInput
from reside.model.locations import check_repository
from reside.seed import settings as stack_settings

IMAGES = "images.json"
"""Name of the file in the state folder that contains the images' digests."""

Kubeconfig = Annotated[Path | None, typer.Option(help="Path of the kubeconfig; the default locations if not given.")]
KubeContext = Annotated[str | None, typer.Option(help="Context of the kubeconfig; the current one if not given.")]
LocalName = Annotated[
    str | None, typer.Option("--local", help="Name of a local cluster (`reside local up`), instead of a kubeconfig.")
]


@dataclass(frozen=True)
class ClusterOptions:
    """The options of a cluster to bootstrap."""

    namespace: Annotated[str, typer.Option(help="Kubernetes namespace of the cluster.")] = "reside"
    kubeconfig: Kubeconfig = None
    local: LocalName = None
    images: Annotated[
        Path | None,
        typer.Option(help="JSON file with the digests of the platform's images; that of `make up` if not given."),
    ] = None
    domain: Annotated[
        str | None, typer.Option(help="Domain of the cluster's Ingresses; requires --cluster-issuer.")
    ] = None
    cluster_issuer: Annotated[str | None, typer.Option(help="cert-manager's ClusterIssuer for the domain.")] = None
    default_placement_group: Annotated[str | None, typer.Option(help="Placement group of new replicas.")] = None
    storage_class: Annotated[
        str | None, typer.Option(help="StorageClass of the volumes; the cluster's default if not given.")
    ] = None
    jazz_mode: Annotated[
        str | None,
        typer.Option(
            help="`members`: the Jazz server stores only what could count for readers; `open`: all that is signed. "
            "`members` if not given."
        ),
    ] = None
    allowed_registry: Annotated[
        list[str] | None, typer.Option(help="Registry host whose images may be loaded; all if not given.")
    ] = None
    request_expiry_hours: Annotated[
        float | None,
        typer.Option(help="Hours after which an undecided load request expires; 24 if not given."),
    ] = None
    request_history: Annotated[
        int | None,
        typer.Option(help="Finished load requests that are kept of each replica and client; 10 if not given."),
    ] = None
    traces_endpoint: Annotated[
        str | None,
        typer.Option(help="Address to which pods send traces by OTLP over HTTP; none are sent if not given."),
    ] = None
    state_backend: Annotated[
        str | None,
        typer.Option(
            help="Object store for the Sentinel's states, such as s3://BUCKET/PREFIX?region=REGION, or `volume` to "
            "move them back from one; on its volume if not given (docs/model.md, section 3)."
        ),
    ] = None
    secrets_provider: Annotated[
        str | None,
        typer.Option(
            help="Key that encrypts secrets in these states, such as awskms://alias/NAME?region=REGION; the engine's "
            "passphrase if not given."
        ),
    ] = None
    policy: Annotated[
        Path | None,
        typer.Option(help="JSON file with levels of the policy's rules, and more rules (docs/model.md, section 3)."),
    ] = None
    network_policies: Annotated[
        str | None,
        typer.Option(
            help="`ingress`: NetworkPolicies limit who reaches the pods of Jazz, etcd and replicas; `full`: also what "
            "pods of replicas reach; `off`: none. `ingress` if not given, `off` in a local cluster."
        ),
    ] = None
    ingress_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the ingress controller; all others if not given.")
    ] = None
    ingress_class: Annotated[
        str | None, typer.Option(help="IngressClass of the cluster's Ingresses; the default one if not given.")
    ] = None
    ingress_annotation: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE: an annotation of the cluster's Ingresses.")
    ] = None
    image_repository: Annotated[
        str | None,
        typer.Option(
            help="Repository with ReSide's images, such as ghcr.io/acme/reside (`reside images push`).",
            envvar="RESIDE_IMAGE_REPOSITORY",
        ),
    ] = None
    registry_ca: Annotated[
        list[str] | None,
        typer.Option(help="HOST=FILE: PEM file with a registry host's own certificate authority."),
    ] = None
    registry_config: Annotated[
        Path | None,
        typer.Option(
            help="config.json of Docker with passwords of registries; they are kept in the Secret reside-registry."
        ),
    ] = None
    registry_mirror: Annotated[
        list[str] | None, typer.Option(help="HOST=ADDRESS: address of a registry host's mirror (plain HTTP).")
    ] = None

    def settings(self, kube_context: str | None = None) -> stack_settings.BootstrapSettings:
        """Return the bootstrap's settings.

        Raises:
            InvalidInput: an option is malformed, or two contradict each other.
        """
        local = self.local or default_local(self.kubeconfig, kube_context)
        if local is not None and (self.kubeconfig is not None or kube_context is not None):
            raise InvalidInput("--local can't be combined with --kubeconfig or --kube-context: omit them, or --local")
        data: dict[str, Any] = {
            "namespace": self.namespace,
            "images": stack_settings.read_images(self.images or project.state_folder() / IMAGES),
            "kubeconfig": str(self.kubeconfig.absolute()) if self.kubeconfig else None,
            "kube_context": kube_context,
            "domain": self.domain,
            "cluster_issuer": self.cluster_issuer,
            "default_placement_group": self.default_placement_group,
            "storage_class": self.storage_class,
        }
        chosen = {
            "jazz_mode": self.jazz_mode,
            "allowed_registries": self.allowed_registry,
            "request_expiry_hours": self.request_expiry_hours,
            "request_history": self.request_history,
            "traces_endpoint": self.traces_endpoint,
            "state_backend": self.state_backend,
            "secrets_provider": self.secrets_provider,
            "network_policies": self.network_policies or ("ingress" if local is None else "off"),
            "ingress_namespace": self.ingress_namespace,
            "ingress_class": self.ingress_class,
            "ingress_annotations": dict(_annotation(entry) for entry in self.ingress_annotation or ()),
            "policy": None if self.policy is None else _document(self.policy),
        }
        data |= {member: value for member, value in chosen.items() if value is not None}
        if local is not None:
            data |= {**stack_settings.local_cluster(local), "storage_class": self.storage_class or "standard"}
        mirrors = dict(_mirror(entry) for entry in self.registry_mirror or ())
        data["registry_mirrors"] = data.get("registry_mirrors", {}) | mirrors
        data["registry_authorities"] = dict(_authority(entry) for entry in self.registry_ca or ())
        if self.image_repository:
            data["image_repository"] = check_repository(self.image_repository, "--image-repository")
        if self.registry_config is not None:
            read_login(self.registry_config)
            data["registry_credentials"] = True
        return stack_settings.parse(data, "options")


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput(f"{path} is not JSON: {error}") from None


def _annotation(entry: str) -> tuple[str, str]:
    name, separator, value = entry.partition("=")
    if not (name and separator):
        raise InvalidInput(f"--ingress-annotation {entry!r} is not NAME=VALUE: name the annotation and its value")
    return name, value


def _mirror(entry: str) -> tuple[str, str]:
    host, separator, address = entry.partition("=")
    if not (host and separator and address):
        raise InvalidInput(
            f"--registry-mirror {entry!r} is not HOST=ADDRESS: name the host and the address of its mirror"
        )
    return host, address


def _authority(entry: str) -> tuple[str, str]:
    host, separator, file = entry.partition("=")
    if not (host and separator and file):
        raise InvalidInput(f"--registry-ca {entry!r} is not HOST=FILE: name the host and a PEM file")
    return host, read_authority(Path(file), f"--registry-ca {entry}")


def default_local(kubeconfig: Path | None, kube_context: str | None) -> str | None:
    """Return `default` if this local cluster exists and the arguments name no other cluster, else None."""
    if kubeconfig is not None or kube_context is not None:
        return None
    try:
        LocalCluster("default").info()
    except NoSuchClusterError:
        return None
    return "default"


def connection_of(local: str | None, kubeconfig: Path | None, kube_context: str | None) -> dict[str, Any]:
    """Return how a cluster is reached: `access`, `kubeconfig` and `kube_context` of the configuration.

    Raises:
        InvalidInput: there is no such local cluster.
    """
    if local is not None:
        found = stack_settings.local_cluster(local)
        return {key: found[key] for key in ("access", "kubeconfig", "kube_context")}
    return {
        "access": "port-forward",
        "kubeconfig": str(kubeconfig.absolute()) if kubeconfig else None,
        "kube_context": kube_context,
    }
