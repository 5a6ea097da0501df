"""The network namespace and the mount namespace of a local cluster's node.

Files pin both namespaces, so that they exist without a process. Every component of the node joins them. They contain
all interfaces, packet filter rules and mounts of the node, which are deleted with the namespaces: taking a cluster down
needs no list of them. Two nodes in one namespace would overwrite each other's kube-proxy chains.

Some paths can't be configured in the upstream programs. The mount namespace mounts folders of the local cluster there:

* `/var/log/containers` the kubelet's links to logs,
* `/var/lib/cni` caches of the CNI library,
* `/run/containerd` the sockets of containerd's shims,

and `<runtime>/kubelet`, because sockets below the kubelet's folder need a short path.
"""

from pathlib import Path

from reside.local.layout import Layout
from reside.local.shell import run, succeeds


def entry(layout: Layout) -> list[str]:
    """Return the prefix of a command that runs in the node's namespaces."""
    return [
        "nsenter",
        f"--net={layout.network_namespace_file}",
        f"--mount={layout.mount_namespace_file}",
        "--",
    ]


def token(layout: Layout) -> str:
    """Return a text that identifies the existing namespaces: it changes when one of them is created again."""
    pins = (layout.network_namespace_file, layout.mount_namespace_file)
    return "-".join(str(path.stat().st_ino) if path.exists() else "none" for path in pins)


def ensure(layout: Layout) -> bool:
    """Create namespaces and mounts that are missing; return whether something was created."""
    changed = _ensure_network(layout)
    changed = _ensure_mounts(layout) or changed
    for source, target in binds(layout).items():
        source.mkdir(parents=True, exist_ok=True, mode=0o755)
        target.mkdir(parents=True, exist_ok=True, mode=0o755)
        if not succeeds(*entry(layout), "mountpoint", "-q", str(target)):
            run(*entry(layout), "mount", "--bind", str(source), str(target))
            changed = True
    return changed


def binds(layout: Layout) -> dict[Path, Path]:
    """Return the folders of the local cluster, each with its mount point in the mount namespace."""
    return {
        layout.runtime / "container-logs": Path("/var/log/containers"),
        layout.runtime / "cni": Path("/var/lib/cni"),
        layout.runtime / "shims": Path("/run/containerd"),
        layout.state / "kubelet": layout.kubelet_root,
    }


def remove(layout: Layout) -> None:
    """Unpin the namespaces, so that the kernel deletes them. No process may still run in them."""
    pins = layout.mount_namespace_file.parent
    for path in (layout.mount_namespace_file, pins):
        while succeeds("mountpoint", "-q", str(path)) or _is_pinned(path):
            run("umount", str(path))
    if layout.network_namespace_file.exists():
        run("ip", "netns", "delete", layout.namespace)


def _ensure_network(layout: Layout) -> bool:
    path = layout.network_namespace_file
    if _is_pinned(path):
        return False
    path.unlink(missing_ok=True)  # an empty file of an interrupted attempt
    run("ip", "netns", "add", layout.namespace)
    return True


def _ensure_mounts(layout: Layout) -> bool:
    pin = layout.mount_namespace_file
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
