"""The network namespace and the mount namespace in which an instance's node lives.

Both are pinned by files, so that they outlive any process, and joined by every component. Because all interfaces,
packet filter rules (kube-proxy's chains too, which two nodes in one namespace would take from each other) and mounts
of the node are inside them, they are gone with the namespaces: taking a cluster down needs no list of what it made.

Some paths cannot be configured in the upstream programs; the mount namespace puts folders of the instance there:

* `/var/log/containers` the kubelet's links to logs,
* `/var/lib/cni` caches of the CNI library,
* `/run/containerd` the sockets of containerd's shims,

and `<runtime>/kubelet`, because sockets below the kubelet's folder need a short path.
"""

from pathlib import Path

from reside.local.layout import Layout
from reside.local.shell import run, succeeds


def entry(layout: Layout) -> list[str]:
    """Return what precedes a command that runs in the node's namespaces."""
    return [
        "nsenter",
        f"--net={layout.network_namespace_file}",
        f"--mount={layout.mount_namespace_file}",
        "--",
    ]


def token(layout: Layout) -> str:
    """Return a text that is another one as soon as one of the namespaces is another one."""
    pins = (layout.network_namespace_file, layout.mount_namespace_file)
    return "-".join(str(path.stat().st_ino) if path.exists() else "none" for path in pins)


def ensure(layout: Layout) -> bool:
    """Make the namespaces if they are missing or were made with other folders; tell whether something was made."""
    made = _ensure_network(layout)
    made = _ensure_mounts(layout) or made
    for source, target in binds(layout).items():
        source.mkdir(parents=True, exist_ok=True, mode=0o755)
        target.mkdir(parents=True, exist_ok=True, mode=0o755)
        if not succeeds(*entry(layout), "mountpoint", "-q", str(target)):
            run(*entry(layout), "mount", "--bind", str(source), str(target))
            made = True
    return made


def binds(layout: Layout) -> dict[Path, Path]:
    """Return the folders of the instance that appear somewhere else in its mount namespace."""
    return {
        layout.runtime / "container-logs": Path("/var/log/containers"),
        layout.runtime / "cni": Path("/var/lib/cni"),
        layout.runtime / "shims": Path("/run/containerd"),
        layout.state / "kubelet": layout.kubelet_root,
    }


def remove(layout: Layout) -> None:
    """Unpin the namespaces; with their last process they are gone. Nothing must run in them any more."""
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
    path.unlink(missing_ok=True)  # an empty file, left by a half-done attempt
    run("ip", "netns", "add", layout.namespace)
    return True


def _ensure_mounts(layout: Layout) -> bool:
    pin = layout.mount_namespace_file
    if _is_pinned(pin):
        return False
    pin.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not succeeds("mountpoint", "-q", str(pin.parent)):
        # The kernel refuses to pin a mount namespace on a mount that propagates into that namespace
        run("mount", "--bind", str(pin.parent), str(pin.parent))
        run("mount", "--make-private", str(pin.parent))
    pin.touch()
    run("unshare", f"--mount={pin}", "--propagation", "slave", "true")
    return True


def _is_pinned(path: Path) -> bool:
    """Tell whether the file holds a namespace: it then is a mount, and so lies on another device than its folder."""
    return path.exists() and path.stat().st_dev != path.parent.stat().st_dev
