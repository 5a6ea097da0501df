"""Debian packages that the local cluster, images and tests need. Root installs them; other users get the command."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.builder.golang import BuildError

NAME = "debian"
NEEDED: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "ss": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "dockerd": "docker.io",
    "docker-registry": "docker-registry",
    "debootstrap": "debootstrap",
}
"""Required programs and the packages that contain them. A program of this name from another package is accepted."""

FOR_TESTS: Mapping[str, str] = {"chromium-headless-shell": "chromium-headless-shell"}
"""The same for what only tests need: a browser."""

_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SYSTEMD = Path("/run/systemd/system")


def missing(search: str | None = None, *, tests: bool = False) -> list[str]:
    """Return the packages to install, without duplicates; with `tests`, also those that only tests need."""
    needed = {**NEEDED, **FOR_TESTS} if tests else NEEDED
    folders = search if search is not None else f"{os.environ.get('PATH', '')}:{_FOLDERS}"
    lacking = [package for binary, package in needed.items() if shutil.which(binary, path=folders) is None]
    return list(dict.fromkeys(lacking))


def install_command(packages: Sequence[str]) -> str:
    """Return the command for a user who is not root."""
    return f"sudo apt-get update && sudo apt-get install --no-install-recommends -y {' '.join(packages)}"


def install(packages: Sequence[str], report: Callable[[str], None]) -> None:
    """Install packages; prevent the registry's own service, which would listen on all interfaces, from starting.

    Raises:
        BuildError: apt-get is missing or failed.
    """
    if shutil.which("apt-get") is None:
        raise BuildError(f"apt-get is missing: install the equivalents of these Debian packages: {' '.join(packages)}")
    services = _SYSTEMD.exists() and "docker-registry" in packages
    if services:
        _run(["systemctl", "mask", "--runtime", "docker-registry.service"])
    report("apt-get update")
    _run(["apt-get", "update"])
    report(f"apt-get install {' '.join(packages)}")
    _run(["apt-get", "install", "--no-install-recommends", "-y", *packages])
    if services:
        _run(["systemctl", "disable", "docker-registry.service"])
        _run(["systemctl", "unmask", "--runtime", "docker-registry.service"])


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise BuildError(f"`{' '.join(command)}` failed:\n{tail}")
