"""The network namespace and the mount namespace of a node.

Files pin both namespaces, so that they exist without a process. Every component of the node joins them. They contain
all interfaces, packet filter rules and mounts of the node, which are deleted with the namespaces: taking a cluster down
needs no list of them. Two nodes in one namespace would overwrite each other's kube-proxy chains.

Some paths can't be configured in the upstream programs. The mount namespace mounts folders of the node there:

* `/var/log/containers` the kubelet's links to logs,
* `/var/lib/cni` caches of the CNI library,
* `/run/containerd` the sockets of containerd's shims,

and `<runtime>/kubelet`, because sockets below the kubelet's folder need a short path.
"""

from pathlib import Path

from reside.local.node_layout import NodeLayout
from reside.local.shell import run, succeeds


def entry(node: NodeLayout) -> list[str]:
    """Return the prefix of a command that runs in the node's namespaces."""
    return [
        "nsenter",
        f"--net={node.network_namespace_file}",
        f"--mount={node.mount_namespace_file}",
        "--",
    ]


def token(node: NodeLayout) -> str:
    """Return a text that identifies the existing namespaces: it changes when one of them is created again."""
    pins = (node.network_namespace_file, node.mount_namespace_file)
    return "-".join(str(path.stat().st_ino) if path.exists() else "none" for path in pins)


def ensure(node: NodeLayout) -> bool:
    """Create namespaces and mounts that are missing; return whether something was created."""
    changed = _ensure_network(node)
    changed = _ensure_mounts(node) or changed
    for source, target in binds(node).items():
        source.mkdir(parents=True, exist_ok=True, mode=0o755)
        target.mkdir(parents=True, exist_ok=True, mode=0o755)
        if not succeeds(*entry(node), "mountpoint", "-q", str(target)):
            run(*entry(node), "mount", "--bind", str(source), str(target))
            changed = True
    return changed


def binds(node: NodeLayout) -> dict[Path, Path]:
    """Return the folders of the node, each with its mount point in the mount namespace."""
    return {
        node.runtime / "container-logs": Path("/var/log/containers"),
        node.runtime / "cni": Path("/var/lib/cni"),
        node.runtime / "shims": Path("/run/containerd"),
        node.state / "kubelet": node.kubelet_root,
    }


def remove(node: NodeLayout) -> None:
    """Unpin the namespaces, so that the kernel deletes them. No process may still run in them."""
    pins = node.mount_namespace_file.parent
    for path in (node.mount_namespace_file, pins):
        while succeeds("mountpoint", "-q", str(path)) or _is_pinned(path):
            run("umount", str(path))
    if node.network_namespace_file.exists():
        run("ip", "netns", "delete", node.namespace)


def _ensure_network(node: NodeLayout) -> bool:
    path = node.network_namespace_file
    if _is_pinned(path):
        return False
    path.unlink(missing_ok=True)  # an empty file of an interrupted attempt
    run("ip", "netns", "add", node.namespace)
    return True


def _ensure_mounts(node: NodeLayout) -> bool:
    pin = node.mount_namespace_file
    if _is_pinned(pin):
        return False
    pin.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not succeeds("mountpoint", "-q", str(pin.parent)):
        # The kernel refuses to pin a mount namespace to a mount that propagates into this namespace
        run("mount", "--bind", str(pin.parent), str(pin.parent))
        run("mount", "--make-private", str(pin.parent))
    pin.touch()
    run("unshare", f"--mount={pin}", "--propagation", "slave", "true")
    return True


def _is_pinned(path: Path) -> bool:
    """Return whether the file pins a namespace: a mount is on another device than its folder."""
    return path.exists() and path.stat().st_dev != path.parent.stat().st_dev
