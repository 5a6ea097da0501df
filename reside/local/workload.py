"""Install images, DNS and StorageClass in a full cluster, and wait until it is usable."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from reside.common.polling import wait_until
from reside.local import addons, api, dns, machine, namespaces
from reside.local.components import Find
from reside.local.errors import LocalError
from reside.local.images import BinaryImage, binary_tag, write_archive
from reside.local.layout import CLUSTER_DOMAIN, REGISTRY_HOST, Layout
from reside.local.node import PAUSE_IMAGE
from reside.local.node_layout import NodeLayout, nodes
from reside.local.shell import run

READY_SECONDS = 120.0


class NotReadyError(LocalError):
    """The components run, but the node or DNS did not become ready."""


Step = tuple[str, Callable[[], None]]
"""The name of a step, and the function that carries it out."""


def install(layout: Layout, find: Find) -> list[Step]:
    """Return the steps that install images and objects, in this order; a repeated step changes nothing."""
    dns_image = BinaryImage(f"{REGISTRY_HOST}/coredns:{binary_tag(find('coredns'))}", find("coredns"))
    images = [BinaryImage(PAUSE_IMAGE, find("pause")), dns_image]
    return [
        *((node.component("images"), partial(_import_missing, node, find, images)) for node in nodes(layout)),
        ("objects", lambda: _apply_objects(layout, dns_image.reference)),
    ]


def wait(layout: Layout) -> list[Step]:
    """Return the steps that wait until node and DNS are ready; they raise `NotReadyError` after `READY_SECONDS`."""
    return [
        *((node.component("node"), partial(_wait_for_node, node)) for node in nodes(layout)),
        ("dns", lambda: _wait_for_dns(layout)),
    ]


def _apply_objects(layout: Layout, dns_image: str) -> None:
    with api.connect(layout) as client:
        for desired in addons.objects(layout, dns_image, forwards=bool(machine.nameservers())):
            client.apply(desired)


def _wait_for_node(node: NodeLayout) -> None:
    layout, path = node.cluster, f"/api/v1/nodes/{node.name}"
    with api.connect(layout) as client:
        if not wait_until(lambda: api.is_ready(client, path), READY_SECONDS):
            raise NotReadyError(
                f"The node {node.name} was not ready in {READY_SECONDS:.0f} s: "
                f"see {layout.logs / node.component('kubelet')}.log."
            )


def _wait_for_dns(layout: Layout) -> None:
    name = f"kubernetes.default.svc.{CLUSTER_DOMAIN}"
    if not wait_until(lambda: dns.resolves(layout.dns_address, name), READY_SECONDS):
        raise NotReadyError(
            f"The cluster's DNS did not answer on {layout.dns_address} in {READY_SECONDS:.0f} s: "
            f"see the pods of kube-system, and the kubelet's log in {layout.logs}."
        )


def _import_missing(node: NodeLayout, find: Find, images: list[BinaryImage]) -> None:
    ctr = [*namespaces.entry(node), str(find("ctr")), "-a", str(node.containerd_socket), "-n", "k8s.io", "images"]
    present = run(*ctr, "list", "-q").split()
    for image in images:
        if image.reference in present:
            continue
        archive = Path(node.runtime / f"{image.binary.name}.tar")
        write_archive(image, archive)
        run(*ctr, "import", str(archive))
        archive.unlink()
