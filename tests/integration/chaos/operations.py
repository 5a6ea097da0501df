"""The operations on a stack that die at a point: what is there before, what is wanted, and whether it is whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.live_objects import live_objects
from support.sentinel import config_map, metadata, workload

from reside.model.constants import MANAGED_BY_LABEL, REPLACE_ANNOTATION, STACK_LABEL
from reside.model.stacks import object_key
from reside.sentinel.engine.adoption import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.local import ClusterInfo

KINDS = ("ConfigMap", "Secret", "Deployment", "Job")
Objects = tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        before: the objects of the stack before it, by the stack's name.
        after: the objects that it should have afterwards; empty: the stack is removed.
        is_lost: whether the state of the stack is lost before, so that all objects are adopted.
    """

    name: str
    before: Callable[[str], Objects]
    after: Callable[[str], Objects]
    is_lost: bool = False

    def expected(self, objects: Objects, uids: dict[str, str]) -> dict[str, dict[str, str]]:
        """Return the preconditions of what the stack does not hold yet."""
        if uids and not self.is_lost:
            return {}
        return {object_key(each): {"uid": uids[object_key(each)]} if uids else dict(ABSENT) for each in objects}


def settings(stack: str, name: str, value: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return config_map(f"{stack}-{name}", stack, x=value)


def secret(stack: str) -> dict[str, Any]:
    """Return a Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(f"{stack}-s", stack), "stringData": {"k": "v"}}


def deployment(stack: str, value: str) -> dict[str, Any]:
    """Return a Deployment without pods, whose template has this value."""
    found = workload("Deployment", f"{stack}-w", stack, replicas=0)
    found["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = value
    return found


def job(stack: str, value: str) -> dict[str, Any]:
    """Return a Job that is replaced when its value changes."""
    found = workload("Job", f"{stack}-j", stack, suspend=True)
    found["metadata"]["annotations"] = {REPLACE_ANNOTATION: "true"}
    found["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = value
    return found


OPERATIONS = (
    Operation("create", lambda _: (), lambda s: (settings(s, "a", "1"), secret(s), deployment(s, "1"))),
    Operation(
        "update",
        lambda s: (*(settings(s, name, "1") for name in "abcd"), deployment(s, "1")),
        lambda s: (*(settings(s, name, "2") for name in "acd"), settings(s, "b", "1"), deployment(s, "2")),
    ),
    Operation(
        "replace",
        lambda s: (settings(s, "a", "1"), job(s, "1")),
        lambda s: (settings(s, "a", "1"), job(s, "2")),
    ),
    Operation(
        "delete",
        lambda s: (settings(s, "a", "1"), settings(s, "b", "1"), deployment(s, "1")),
        lambda s: (settings(s, "a", "1"),),
    ),
    Operation("destroy", lambda s: (settings(s, "a", "1"), secret(s)), lambda _: ()),
    Operation(
        "adopt",
        lambda s: (settings(s, "a", "1"), deployment(s, "1")),
        lambda s: (settings(s, "a", "2"), deployment(s, "1")),
        is_lost=True,
    ),
)


def live(info: ClusterInfo, namespace: str, stack: str) -> dict[str, dict[str, Any]]:
    """Return all live objects of a stack, by `Kind/name`."""
    labels = {MANAGED_BY_LABEL: "kubernetes-sentinel", STACK_LABEL: stack}
    found = [(kind, each) for kind in KINDS for each in live_objects(info, namespace, kind, labels)]
    return {f"{kind}/{each['metadata']['name']}": each for kind, each in found}


def value(obj: dict[str, Any]) -> Any:
    """Return what an operation changes of an object."""
    if obj.get("spec"):
        return obj["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]
    return (obj.get("data") or {}).get("x")
