"""Finds the binaries that a cluster is made of.

Looked for in this order: the folder named by `RESIDE_TOOLS`; `.tools/bin` of the checkout that this package lies in
(made by tools/build.py); PATH with the system folders.
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
"""Binaries that come from Debian, each with its package."""


def checkout_tools() -> Path:
    """Return `.tools/bin` of the checkout that this package lies in, whether it exists or not."""
    return Path(__file__).resolve().parents[2] / ".tools/bin"


def default_search(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folders to look in, as a PATH."""
    folders = [environ.get("RESIDE_TOOLS", ""), str(checkout_tools()), environ.get("PATH", ""), _SYSTEM_FOLDERS]
    return os.pathsep.join(folder for folder in folders if folder)


@dataclass(frozen=True)
class Toolchain:
    """The folders in which binaries are looked for.

    Args:
        search: Folders joined as in PATH.
    """

    search: str

    @classmethod
    def default(cls) -> "Toolchain":
        """Look in the usual places of this process."""
        return cls(default_search())

    def find(self, tool: str) -> Path:
        """Return the binary's path.

        Raises:
            ToolMissingError: It is nowhere; the message names the command that brings it.
        """
        found = shutil.which(tool, path=self.search)
        if found is None:
            package = DEBIAN_PACKAGES.get(tool)
            cure = f"run `apt-get install {package}` as root" if package else "run `make tools` in the checkout"
            raise ToolMissingError(tool, f"{cure}, or name its folder in RESIDE_TOOLS.")
        real = Path(found).resolve()
        # Links into the cache are followed, so that two checkouts start the very same thing; a link whose target has
        # another name is a program that asks for its own name, such as iptables
        return real if real.name == tool else Path(found)

    def find_all(self, tools: Iterable[str]) -> dict[str, Path]:
        """Return the paths of all these binaries; the first that is missing raises `ToolMissingError`."""
        return {tool: self.find(tool) for tool in tools}
