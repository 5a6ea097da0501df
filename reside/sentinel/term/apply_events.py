"""Record failed applies and removals as Kubernetes events, for those who look at objects and not at reports.

An event is about the object that failed, or else about the workload of the stack. The Sentinel writes it when it
reports the error, and increments its count with each attempt (`reside.sentinel.guard.repair_events`). The message is
that of the report, which contains no secret value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.model.stacks import object_key
from reside.sentinel.errors import fault_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.guard import Guard

_WORKLOADS: Final = ("Deployment", "StatefulSet", "Job")


def tell_failure(guard: Guard, stack: str, objects: Iterable[K8sObject], error: Exception) -> None:
    """Write an event about a failed operation on a stack soon.

    Args:
        guard: writes it.
        stack: the name of the stack.
        objects: the objects that were to be applied or removed; none of a stack without objects.
        error: why that failed.
    """
    about = subject(error, objects, guard.cache.get)
    if about is not None:
        message = f"The stack {stack} is not as declared: {fault_text(error)}"
        guard.repairer.findings.events.tell(about, "ApplyFailed", message)


def subject(
    error: Exception, objects: Iterable[K8sObject], live: Callable[[str], K8sObject | None]
) -> K8sObject | None:
    """Return the object that an event is about: the live one, or if there is none the desired one. Pure."""
    desired = {object_key(each): each for each in objects}
    failed: Any = getattr(error, "object", None)
    if failed in desired or (isinstance(failed, str) and live(failed) is not None):
        key = str(failed)
    elif desired:
        key = min(desired, key=_order)
    else:
        return None
    return live(key) or desired[key]


def _order(key: str) -> tuple[int, str]:
    kind = key.partition("/")[0]
    return (_WORKLOADS.index(kind) if kind in _WORKLOADS else len(_WORKLOADS)), key
