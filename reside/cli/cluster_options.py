"""Options of the commands that bootstrap a cluster or print the objects that bootstrap it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path  # typer reads the annotations when the program starts
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from reside.build.registries import read_authority
from reside.cli import project
from reside.cli.registry_login import read_login
from reside.local import LocalCluster, NoSuchClusterError
from reside.model.errors import InvalidInput
from reside.model.locations import check_repository
from reside.seed import settings as stack_settings
from reside.seed.settings import described

if TYPE_CHECKING:
    from collections.abc import Callable

LOCAL_VARIABLE: Final = "RESIDE_LOCAL_CLUSTER"
IMAGES = "images.json"
"""Name of the file in the state folder that contains the images' digests."""

Kubeconfig = Annotated[Path | None, typer.Option(help="Path of the kubeconfig; the default locations if not given.")]
KubeContext = Annotated[str | None, typer.Option(help="Context of the kubeconfig; the current one if not given.")]
LocalName = Annotated[
    str | None, typer.Option("--local", help="Name of a local cluster (`reside local up`), instead of a kubeconfig.")
]


OPTION_OF: Final = {
    "allowed_registries": "allowed_registry",
    "ingress_annotations": "ingress_annotation",
    "registry_authorities": "registry_ca",
    "registry_credentials": "registry_config",
    "registry_mirrors": "registry_mirror",
}
"""Settings whose options have other names, because each gives one of several values, or a file."""


@dataclass(frozen=True)
class ClusterOptions:
    """The options of a cluster to bootstrap: each gives the setting of its name (`OPTION_OF`)."""

    namespace: Annotated[str | None, typer.Option(help=described("namespace", "`reside` if not given."))] = None
    kubeconfig: Kubeconfig = None
    local: LocalName = None
    images: Annotated[
        Path | None,
        typer.Option(help="JSON file with the digests of the platform's images; that of `make up` if not given."),
    ] = None
    domain: Annotated[str | None, typer.Option(help=described("domain"))] = None
    cluster_issuer: Annotated[str | None, typer.Option(help=described("cluster_issuer"))] = None
    default_placement_group: Annotated[str | None, typer.Option(help=described("default_placement_group"))] = None
    storage_class: Annotated[str | None, typer.Option(help=described("storage_class"))] = None
    storage_size: Annotated[str | None, typer.Option(help=described("storage_size"))] = None
    jazz_mode: Annotated[str | None, typer.Option(help=described("jazz_mode"))] = None
    allowed_registry: Annotated[
        list[str] | None, typer.Option(help="Registry host whose images may be loaded; all if not given.")
    ] = None
    request_expiry_hours: Annotated[float | None, typer.Option(help=described("request_expiry_hours"))] = None
    request_history: Annotated[int | None, typer.Option(help=described("request_history"))] = None
    traces_endpoint: Annotated[str | None, typer.Option(help=described("traces_endpoint"))] = None
    state_backend: Annotated[str | None, typer.Option(help=described("state_backend"))] = None
    secrets_provider: Annotated[str | None, typer.Option(help=described("secrets_provider"))] = None
    policy: Annotated[Path | None, typer.Option(help=f"JSON file. {described('policy')}")] = None
    network_policies: Annotated[
        str | None,
        typer.Option(help=described("network_policies", "`ingress` if not given, `off` in a local cluster.")),
    ] = None
    ingress_namespace: Annotated[str | None, typer.Option(help=described("ingress_namespace"))] = None
    ingress_class: Annotated[str | None, typer.Option(help=described("ingress_class"))] = None
    ingress_annotation: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE: an annotation of the cluster's Ingresses.")
    ] = None
    gateway: Annotated[str | None, typer.Option(help=described("gateway"))] = None
    image_repository: Annotated[
        str | None, typer.Option(help=described("image_repository"), envvar="RESIDE_IMAGE_REPOSITORY")
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
    deadline: Annotated[float | None, typer.Option(help=described("deadline"))] = None

    def settings(self, kube_context: str | None = None) -> stack_settings.BootstrapSettings:
        """Return the bootstrap's settings: those of the options, else of the environment.

        Raises:
            InvalidInput: an option is malformed, or two contradict each other.
        """
        given = stack_settings.members_of_environment()
        local = self.local or default_local(
            self.kubeconfig or given.get("kubeconfig"), kube_context or given.get("kube_context")
        )
        if local is not None and (self.kubeconfig is not None or kube_context is not None):
            raise InvalidInput("--local can't be combined with --kubeconfig or --kube-context: omit them, or --local")
        data: dict[str, Any] = {"namespace": "reside", "network_policies": "ingress"}
        if local is not None:
            data |= {"network_policies": "off", "storage_class": "standard", **stack_settings.local_cluster(local)}
        mirrors = data.get("registry_mirrors", {})
        data |= given | self._given()
        data["registry_mirrors"] = mirrors | data.get("registry_mirrors", {})
        if kube_context is not None:
            data["kube_context"] = kube_context
        images = self.images or project.state_folder() / IMAGES
        data["images"] = stack_settings.read_images(images)
        data["image_documents"] = stack_settings.documents_of(images)
        return stack_settings.parse(data, "options")

    def _given(self) -> dict[str, Any]:
        """Return the settings that options give."""
        found: dict[str, Any] = {}
        for member in stack_settings.BootstrapSettings.model_fields.keys() - {"images"}:
            value = getattr(self, OPTION_OF.get(member, member), None)
            if value not in (None, "", []):
                found[member] = _READERS[member](value) if member in _READERS else value
        return found


def _absolute(path: Path) -> str:
    return str(path.absolute())


def _has_login(path: Path) -> bool:
    read_login(path)
    return True


def _pairs(read: Callable[[str], tuple[str, str]]) -> Callable[[list[str]], dict[str, str]]:
    return lambda entries: dict(read(entry) for entry in entries)


def _repository(repository: str) -> str:
    return check_repository(repository, "--image-repository")


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


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "image_repository": _repository,
    "ingress_annotations": _pairs(_annotation),
    "kubeconfig": _absolute,
    "policy": _document,
    "registry_authorities": _pairs(_authority),
    "registry_credentials": _has_login,
    "registry_mirrors": _pairs(_mirror),
}
"""How the values of options become settings, where they differ."""


def default_local(kubeconfig: Path | str | None, kube_context: str | None) -> str | None:
    """Return this machine's local cluster if it exists and the arguments name no other cluster, else None.

    `RESIDE_LOCAL_CLUSTER` names it, as for `reside local`; `default` if it is not set.
    """
    if kubeconfig is not None or kube_context is not None:
        return None
    name = os.environ.get(LOCAL_VARIABLE) or "default"
    try:
        LocalCluster(name).info()
    except NoSuchClusterError:
        return None
    return name


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
