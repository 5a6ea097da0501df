"""What runs on the node from the start: its images, DNS and StorageClass; and when the cluster is usable."""

from collections.abc import Iterator
from pathlib import Path

from reside.local import addons, api, dns, machine, namespaces
from reside.local.components import Find
from reside.local.errors import LocalError
from reside.local.images import BinaryImage, binary_tag, write_archive
from reside.local.layout import CLUSTER_DOMAIN, REGISTRY_HOST, Layout
from reside.local.node import PAUSE_IMAGE
from reside.local.shell import run
from reside.local.waiting import wait_until

READY_SECONDS = 120.0


class NotReadyError(LocalError):
    """The components run, but node or DNS did not become ready."""


def install(layout: Layout, find: Find) -> Iterator[str]:
    """Bring images and objects in, then wait until node and DNS are ready; yields each part that is done.

    Raises:
        NotReadyError: Node or DNS are not ready in time.
    """
    dns_image = BinaryImage(f"{REGISTRY_HOST}/coredns:{binary_tag(find('coredns'))}", find("coredns"))
    _import_missing(layout, find, [BinaryImage(PAUSE_IMAGE, find("pause")), dns_image])
    yield "images"
    with api.connect(layout) as client:
        for wanted in addons.objects(layout, dns_image.reference, forwards=bool(machine.nameservers())):
            client.apply(wanted)
        yield "objects"
        _wait_for_node(layout, client)
    yield "node"
    if not wait_until(
        lambda: dns.resolves(layout.dns_address, f"kubernetes.default.svc.{CLUSTER_DOMAIN}"), READY_SECONDS
    ):
        raise NotReadyError(
            f"The cluster's DNS did not answer on {layout.dns_address} in {READY_SECONDS:.0f} s: "
            f"see the pods of kube-system, and the kubelet's log in {layout.logs}."
        )
    yield "dns"


def _wait_for_node(layout: Layout, client: api.Api) -> None:
    path = f"/api/v1/nodes/{layout.node_name}"
    if not wait_until(lambda: api.has_condition(client.get(path), "Ready"), READY_SECONDS):
        raise NotReadyError(f"The node was not ready in {READY_SECONDS:.0f} s: see the kubelet's log in {layout.logs}.")


def _import_missing(layout: Layout, find: Find, images: list[BinaryImage]) -> None:
    ctr = [*namespaces.entry(layout), str(find("ctr")), "-a", str(layout.containerd_socket), "-n", "k8s.io", "images"]
    present = run(*ctr, "list", "-q").split()
    for image in images:
        if image.reference in present:
            continue
        archive = Path(layout.runtime / f"{image.binary.name}.tar")
        write_archive(image, archive)
        run(*ctr, "import", str(archive))
        archive.unlink()
