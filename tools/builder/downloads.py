"""The vendors' official binaries that a run fetches in place of building a unit, as data.

Each checksum is one that the vendor has published, for exactly this version. CONTRIBUTING.md says why the other units
are built.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tools.builder.units import KUBERNETES_VERSION


@dataclass(frozen=True)
class Download:
    """An archive with all binaries of a unit.

    Args:
        url: where the vendor serves it.
        algorithm: of the checksum, as `hashlib` names it.
        checksum: of the archive, in hexadecimal digits.
        members: binary → its path in the archive.
    """

    url: str
    algorithm: str
    checksum: str
    members: Mapping[str, str]

    @property
    def key(self) -> str:
        """The part of an entry's name that depends on the content."""
        return f"fetched-{self.checksum[:16]}"


_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")


def _kubernetes(architecture: str, checksum: str) -> Download:
    return Download(
        f"https://dl.k8s.io/{KUBERNETES_VERSION}/kubernetes-server-linux-{architecture}.tar.gz",
        "sha512",
        checksum,
        {name: f"kubernetes/server/bin/{name}" for name in _KUBERNETES},
    )


DOWNLOADS: Mapping[tuple[str, str], Download] = {
    # From CHANGELOG/CHANGELOG-1.34.md of kubernetes/kubernetes, which publishes SHA-512 and no SHA-256
    ("kubernetes", "Linux x86_64"): _kubernetes(
        "amd64",
        "6dacc62cf3def4873c680bd308fa88eb0ee857e4ca4e19723921172f7e6d4f7f"
        "774ea7742d59fa051807856896affb4fe86e55fc2612e2c3f729e5e10cde3200",
    ),
    ("kubernetes", "Linux aarch64"): _kubernetes(
        "arm64",
        "788e89509219b22e08ec436bc4ba39ccf47237b78253bdb26b1d2287c22d2eda"
        "bacb8f2102d657fd259e3c7d2d2b671ba33ca60383beabd480873bcc30773d7b",
    ),
}
"""Unit, and system with processor, → the archive."""


def download_of(unit: str) -> Download | None:
    """Return the archive of a unit for this machine."""
    machine = os.uname()
    return DOWNLOADS.get((unit, f"{machine.sysname} {machine.machine}"))
