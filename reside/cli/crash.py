"""After a killed engine: what it left in the state of the root's stack, and how that is taken away.

A killed `pulumi up` leaves its lock file, maybe a half-written file, and a pending operation. The lock file names the
process that took it; on this machine that process is dead if no `pulumi` of that id runs. Clearing a pending create is
right because every create of the bootstrap finds what an earlier one made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from reside.common.files import write_private
from reside.common.polling import wait_until
from reside.model.errors import Conflict
from reside.seed.guard import is_engine

if TYPE_CHECKING:
    from pulumi.automation import Stack


def remove_dead_locks(state: Path, stack: str, processes: Path = Path("/proc")) -> bool:
    """Remove the lock files of engines that are no more; returns whether there were any.

    Args:
        state: folder of the file backend.
        stack: the stack's name.
        processes: the folder of running processes; another one in tests.
    """
    dead = [path for path in _locks(state, stack) if not _lives(path, processes)]
    for path in dead:
        path.unlink(missing_ok=True)
    return bool(dead)


def wait_for_others(state: Path, stack: str, deadline: float, processes: Path = Path("/proc")) -> None:
    """Wait until no living engine works on the stack: one whose command was killed may still be on its way out.

    Raises:
        Conflict: one works longer than ``deadline`` seconds.
    """
    if not wait_until(lambda: not any(_lives(path, processes) for path in _locks(state, stack)), deadline):
        raise Conflict(f"another bootstrap works on stack {stack} for more than {deadline:.0f} s: let it end first")


def _locks(state: Path, stack: str) -> list[Path]:
    return list((state / ".pulumi/locks").glob(f"**/{stack}/*.json"))


def _lives(lock: Path, processes: Path) -> bool:
    try:
        holder = json.loads(lock.read_text()).get("pid")
    except (ValueError, FileNotFoundError):
        return False  # torn by the same crash, or given back by now
    return is_engine(processes, str(holder))


def forget_other_cluster(state: Path, stack: str, uid: str | None) -> bool:
    """Put a stack's state aside if it speaks of another Kubernetes than the one that answers now.

    An embedded cluster that was deleted and made anew has the same address; with the old state the bootstrap would find
    everything in place. The bootstrap itself never needs an old state: it finds what stands in the cluster.

    Args:
        state: folder of the file backend.
        stack: the stack's name.
        uid: what tells the Kubernetes that answers from others; None if it is not known.

    Returns:
        whether a state was put aside.
    """
    note = state / f"{stack}.cluster"
    known = note.read_text().strip() if note.exists() else None
    if uid is None or uid == known:
        return False
    moved = False
    if known is not None:
        for path in (state / ".pulumi/stacks").glob(f"*/{stack}.json*"):
            path.replace(path.with_name(f"{path.name}.of-{known}.old"))
            moved = True
    write_private(note, f"{uid}\n")
    return moved


def mend_files(state: Path) -> None:
    """Remove what a kill left of half-written files: drafts, and descriptions (``.attrs``) that are no JSON.

    The checkpoint itself is replaced in one step, but its description is written in place; an empty one makes every
    later run fail with "failed to load checkpoint: EOF". Without it the checkpoint is read all the same.
    """
    folder = state / ".pulumi"
    for draft in folder.glob("**/*.tmp"):
        draft.unlink()
    for description in folder.glob("**/*.attrs"):
        try:
            json.loads(description.read_text())
        except ValueError:
            description.unlink()


def clear_pending(stack: Stack) -> None:
    """Take pending operations out of a stack's state."""
    exported = stack.export_stack()
    deployment = dict(exported.deployment or {})
    if deployment.pop("pending_operations", None):
        exported.deployment = deployment
        stack.import_stack(exported)
