"""Clean up the bootstrap's Pulumi state after an engine was killed.

A killed `pulumi up` leaves its lock file, possibly a partially written file, and a pending operation. The lock file
names the process that created it; the lock is stale if no `pulumi` process with this id runs on this machine. Pending
creates may be cleared because every create of the bootstrap finds what an earlier one created.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from reside.common.files import write_private
from reside.common.polling import wait_until
from reside.model.errors import Conflict
from reside.seed.engine_watch import is_engine

if TYPE_CHECKING:
    from pulumi.automation import Stack


def remove_stale_locks(state: Path, stack: str, processes: Path = Path("/proc")) -> bool:
    """Remove the lock files of engines that no longer run; return whether there were any.

    Args:
        state: folder of the file backend.
        stack: name of the stack.
        processes: folder of running processes; another one in tests.
    """
    stale = [path for path in _locks(state, stack) if not _is_held(path, processes)]
    for path in stale:
        path.unlink(missing_ok=True)
    return bool(stale)


def wait_for_others(state: Path, stack: str, deadline: float, processes: Path = Path("/proc")) -> None:
    """Wait until no engine holds a lock of the stack: one whose command was killed may still be shutting down.

    Raises:
        Conflict: an engine still holds one after `deadline` seconds.
    """
    if not wait_until(lambda: not any(_is_held(path, processes) for path in _locks(state, stack)), deadline):
        raise Conflict(
            f"another bootstrap of stack {stack} still runs after {deadline:.0f} s: wait for its end, or stop it"
        )


def _locks(state: Path, stack: str) -> list[Path]:
    return list((state / ".pulumi/locks").glob(f"**/{stack}/*.json"))


def _is_held(lock: Path, processes: Path) -> bool:
    try:
        holder = json.loads(lock.read_text()).get("pid")
    except (ValueError, FileNotFoundError):
        return False  # partially written before the same crash, or released just now
    return is_engine(processes, str(holder))


def archive_other_state(state: Path, stack: str, uid: str | None) -> bool:
    """Rename a stack's state if it describes another Kubernetes cluster than the current one.

    A local cluster that was deleted and created again has the same address. With the old state the bootstrap would
    assume that all objects exist. It never needs an old state, because it finds the objects that exist.

    Args:
        state: folder of the file backend.
        stack: name of the stack.
        uid: unique id of the current Kubernetes cluster; None if it is unknown.

    Returns:
        whether a state was renamed.
    """
    uid_file = state / f"{stack}.cluster"
    previous = uid_file.read_text().strip() if uid_file.exists() else None
    if uid is None or uid == previous:
        return False
    renamed = False
    if previous is not None:
        for path in (state / ".pulumi/stacks").glob(f"*/{stack}.json*"):
            path.replace(path.with_name(f"{path.name}.of-{previous}.old"))
            renamed = True
    write_private(uid_file, f"{uid}\n")
    return renamed


def remove_state(state: Path, stack: str, uid: str | None) -> None:
    """Remove the state of a stack whose cluster was deleted; keep one that describes another Kubernetes cluster."""
    uid_file = state / f"{stack}.cluster"
    if uid is not None and uid_file.exists() and uid_file.read_text().strip() != uid:
        return
    for path in (state / ".pulumi/stacks").glob(f"*/{stack}.json*"):
        if not path.name.endswith(".old"):
            path.unlink()
    uid_file.unlink(missing_ok=True)


def remove_partial_files(state: Path) -> None:
    """Remove partially written files of a killed engine: temporary files, and attribute files that are not JSON.

    The checkpoint is replaced atomically, but its attribute file (`.attrs`) is written in place. An empty one makes
    every later run fail with "failed to load checkpoint: EOF". The checkpoint can be read without it.
    """
    folder = state / ".pulumi"
    for temporary in folder.glob("**/*.tmp"):
        temporary.unlink()
    for attributes in folder.glob("**/*.attrs"):
        try:
            json.loads(attributes.read_text())
        except ValueError:
            attributes.unlink()


def clear_pending_operations(stack: Stack) -> None:
    """Remove pending operations from a stack's state."""
    exported = stack.export_stack()
    deployment = dict(exported.deployment or {})
    if deployment.pop("pending_operations", None):
        exported.deployment = deployment
        stack.import_stack(exported)
