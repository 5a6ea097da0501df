"""Set up what a full cluster needs on the machine before its components start, and remove it."""

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from reside.common.files import write_private
from reside.local import cgroups, ingress, namespaces, network, node_links
from reside.local.components import Find
from reside.local.layout import Layout
from reside.local.node import config_files
from reside.local.node_layout import existing_nodes, nodes

_RESOLVERS = (Path("/run/systemd/resolve/resolv.conf"), Path("/etc/resolv.conf"))


def ensure(layout: Layout, find: Find) -> bool:
    """Create control group, namespaces, link and configuration files; return whether something changed."""
    layout.runtime.mkdir(parents=True, exist_ok=True, mode=0o700)
    changed = False
    for node in nodes(layout):
        cgroups.ensure(node.cgroup)
        changed = namespaces.ensure(node) or changed
        (node.config / "cni").mkdir(parents=True, exist_ok=True, mode=0o700)
    changed = network.ensure(layout) or changed
    changed = node_links.ensure(layout) or changed
    files = dict(config_files(layout, find, _registry_secret(layout), nameservers()))
    if layout.ingress:
        files.update(ingress.config_files(layout))
    return _write_files(files) or changed


def remove(layout: Layout) -> None:
    """Remove everything but the files in the state folder. No process of the local cluster may still run."""
    network.remove(layout)
    for node in existing_nodes(layout):
        namespaces.remove(node)
    cgroups.remove(layout.cgroup)
    if layout.runtime.exists():
        shutil.rmtree(layout.runtime)


def nameservers() -> list[str]:
    """Return the machine's resolvers that pods can use as well: those that are not on loopback."""
    for path in _RESOLVERS:
        if path.exists():
            words = [line.split() for line in path.read_text().splitlines()]
            servers = [line[1] for line in words if len(line) > 1 and line[0] == "nameserver"]
            usable = [server for server in servers if not server.startswith("127.") and server != "::1"]
            if usable:
                return usable
    return []


def _registry_secret(layout: Layout) -> str:
    path = layout.config / "registry-secret"
    if not path.exists():
        write_private(path, secrets.token_hex(32), make_folder=True)
    return path.read_text()


def _write_files(files: Mapping[Path, str]) -> bool:
    changed = [path for path, content in files.items() if not path.exists() or path.read_text() != content]
    for path in changed:
        write_private(path, files[path], make_folder=True)
    return bool(changed)
