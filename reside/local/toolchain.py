"""Find the binaries of a local cluster.

The search order is: the folder in `RESIDE_TOOLS`; `.tools/bin` of the checkout that contains this package (created by
tools/build.py); PATH; the system folders.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reside.local.errors import ToolMissingError

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
DEBIAN_PACKAGES: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "runc": "runc",
    "docker-registry": "docker-registry",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "umount": "mount",
}
"""Debian package of each binary that comes from Debian."""

RESOURCE_FILES = (
    "acme.cert-manager.io_challenges.yaml",
    "acme.cert-manager.io_orders.yaml",
    "cert-manager.io_certificaterequests.yaml",
    "cert-manager.io_certificates.yaml",
    "cert-manager.io_clusterissuers.yaml",
    "cert-manager.io_issuers.yaml",
    "gateway.networking.k8s.io_backendtlspolicies.yaml",
    "gateway.networking.k8s.io_gatewayclasses.yaml",
    "gateway.networking.k8s.io_gateways.yaml",
    "gateway.networking.k8s.io_grpcroutes.yaml",
    "gateway.networking.k8s.io_httproutes.yaml",
    "gateway.networking.k8s.io_referencegrants.yaml",
)
"""Files with the resource definitions of cert-manager and of the Gateway API: API group and plural of each."""

OPTIONAL_TOOLS = ("traefik", "cert-manager", *RESOURCE_FILES)
"""What `up --ingress` needs."""


def checkout_tools() -> Path:
    """Return `.tools/bin` of the checkout that contains this package; it may not exist."""
    return Path(__file__).resolve().parents[2] / ".tools/bin"


def default_search(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folders to search, in the format of PATH."""
    folders = [environ.get("RESIDE_TOOLS", ""), str(checkout_tools()), environ.get("PATH", ""), _SYSTEM_FOLDERS]
    return os.pathsep.join(folder for folder in folders if folder)


@dataclass(frozen=True)
class Toolchain:
    """The folders that are searched for binaries.

    Args:
        search: folders in the format of PATH.
    """

    search: str

    @classmethod
    def default(cls) -> "Toolchain":
        """Return a toolchain that searches the default folders of this process."""
        return cls(default_search())

    def find(self, tool: str) -> Path:
        """Return the path of a binary.

        Raises:
            ToolMissingError: it was not found; the message names the command that installs it.
        """
        found = shutil.which(tool, path=self.search)
        if found is None:
            package = DEBIAN_PACKAGES.get(tool)
            target = "alltools" if tool in OPTIONAL_TOOLS else "tools"
            cure = f"run `apt-get install {package}` as root" if package else f"run `make {target}` in the checkout"
            raise ToolMissingError(tool, f"{cure}, or name its folder in RESIDE_TOOLS.")
        real = Path(found).resolve()
        # Follow links into the cache, so that two checkouts start the same file. Do not follow a link to a file with
        # another name: a program such as iptables depends on the name under which it is called.
        return real if real.name == tool else Path(found)

    def find_all(self, tools: Iterable[str]) -> dict[str, Path]:
        """Return the paths of all these binaries; raise `ToolMissingError` for the first one that is missing."""
        return {tool: self.find(tool) for tool in tools}
