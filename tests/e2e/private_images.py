"""A registry with a password and its own certificate authority, which has the images of the embedded Kubernetes.

It runs in the network namespace of the node, so pods and the node reach it, and nothing listens on this machine. Its
name in image references is the node's address. A machine that reaches the API server alone does not reach it.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from support.eventually import eventually_sync
from support.registry import Place, private_registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.platform import Platform

_FIRST_OCTET = 100
"""The second octet of the network of the local cluster with the index 0."""


@dataclass(frozen=True)
class PrivateImages:
    """The registry.

    Attributes:
        host: its name in image references.
        authority: file with its certificate authority.
        login: Docker configuration with its password.
    """

    host: str
    authority: Path
    login: Path

    @property
    def options(self) -> list[str]:
        """Options of `reside cluster bootstrap` that name it."""
        authority = f"{self.host}={self.authority}"
        config = ["--registry-ca", authority, "--registry-config", str(self.login)]
        return ["--image-repository", f"{self.host}/reside", *config]

    def trust(self, platform: Platform) -> None:
        """Configure the node's containerd as docs/own-cluster.md says."""
        folder = platform.local_state / platform.name / "config" / "registries" / self.host
        folder.mkdir()
        url = f"https://{self.host}"
        (folder / "hosts.toml").write_text(f'server = "{url}"\n\n[host."{url}"]\nca = "{self.authority}"\n')


@contextmanager
def private_images(platform: Platform, folder: Path) -> Iterator[PrivateImages]:
    """Run the registry while the block is open."""
    address = str(urlsplit(platform.info.api_url).hostname)
    namespace = f"reside{int(address.split('.')[1]) - _FIRST_OCTET}"
    place = Place(
        address,
        address,
        ("nsenter", f"--net=/run/netns/{namespace}", "--"),
        port=5443,
        images=platform.local_state / platform.name / "registry",
    )
    with private_registry(folder, place=place) as registry:
        login = folder / "login.json"
        login.write_text(registry.login)
        yield PrivateImages(registry.host, folder / "ca.pem", login)


def refusal(cluster: Platform, name: str, image: str) -> str:
    """Start a pod without pull secrets, and return why its image is not pulled."""
    container = {"name": "main", "image": image}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    file = cluster.folder / f"{name}.json"
    file.write_text(json.dumps(pod))
    cluster.kubectl("apply", "-f", str(file))

    def waiting() -> dict[str, str]:
        statuses = cluster.get("Pod", name).get("status", {}).get("containerStatuses", [])
        found: dict[str, str] = statuses[0]["state"].get("waiting", {}) if statuses else {}
        return found

    refused = eventually_sync(
        f"the refusal of {image}",
        waiting,
        lambda found: found.get("reason") in ("ErrImagePull", "ImagePullBackOff") and ":" in found.get("message", ""),
        within=120,
    )
    cluster.kubectl("delete", "pod", name, "--wait=false")
    return refused["message"]
