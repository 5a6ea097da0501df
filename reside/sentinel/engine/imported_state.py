"""Check an exported state before it replaces the state of a stack. Pure.

An apply deletes what the state has and the stack does not. So each resource must be what its URN says, of this stack
and this namespace; the caller decides whether the stack may hold these objects.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from reside.model.errors import InvalidInput
from reside.model.kinds import BY_KIND
from reside.sentinel.engine.declaration import STACK_TYPE
from reside.sentinel.engine.events import object_of
from reside.sentinel.engine.settings import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION: Final = 3
_OWN: Final = (STACK_TYPE, "pulumi:providers:kubernetes")
"""The types of the resources of a stack that are no Kubernetes objects."""


def objects_of_state(content: bytes, stack: str, namespace: str) -> frozenset[str]:
    """Return `Kind/name` of the objects in a state, as `pulumi stack export` writes it.

    Args:
        content: the state.
        stack: the stack that it must belong to.
        namespace: the namespace in which all its objects must be.

    Raises:
        InvalidInput: it is no state of this stack; the message says why.
    """
    return frozenset(_objects(_resources(content), stack, namespace))


def count_objects(content: bytes) -> int:
    """Return the number of Kubernetes objects in a state; 0 if it is none."""
    try:
        return sum(object_of(str(each.get("urn"))) is not None for each in _resources(content))
    except InvalidInput:
        return 0


def _objects(resources: list[dict[str, Any]], stack: str, namespace: str) -> Iterator[str]:
    prefix = f"urn:pulumi:{stack}::{PROJECT}::"
    for resource in resources:
        urn = resource.get("urn")
        if not isinstance(urn, str) or not urn.startswith(prefix):
            raise InvalidInput(f"the state is not of the stack {stack}: it has the resource {urn!r}")
        key = object_of(urn)
        if key is None:
            if resource.get("type") not in _OWN:
                raise InvalidInput(f"the state has {urn}, which no stack of the Sentinel has")
            continue
        _check_object(resource, key, namespace)
        yield key


def _check_object(resource: dict[str, Any], key: str, namespace: str) -> None:
    kind, _, name = key.partition("/")
    found = BY_KIND.get(kind)
    if found is None or resource.get("id") != f"{namespace}/{name}":
        raise InvalidInput(f"{key} of the state is not an object of the namespace {namespace} that a stack can have")
    for side in ("inputs", "outputs"):
        match resource.get(side):
            case {"apiVersion": version, "kind": str(seen), "metadata": {"name": str(called), **metadata}} if (
                version == found.api_version
                and (seen, called) == (kind, name)
                and metadata.get("namespace", namespace) == namespace
            ):
                continue
        raise InvalidInput(f"{key} of the state describes another object in its {side}")


def _resources(content: bytes) -> list[dict[str, Any]]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidInput("the state is not JSON: export it with `reside state export`") from None
    match document:
        case {"version": version, "deployment": dict(deployment)} if version == _VERSION:
            resources = deployment.get("resources") or []
            if isinstance(resources, list) and all(isinstance(each, dict) for each in resources):
                return resources
    raise InvalidInput(f"the state is no export of version {_VERSION}: export it with `reside state export`")
