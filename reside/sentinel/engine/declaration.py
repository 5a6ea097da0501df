"""A stack's resources as the document that the resident engine runs as a program.

It is read by engine/internal/operation/declared.go. Pure. Resources name others by their place in the list: the stack
is the first, the provider the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.sentinel.engine.settings import PROJECT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.sentinel.engine.resources import Resource, Resources

CLIENT: Final = "stdin:"
"""The address, for ``--client``, of a program that comes with the command."""
_STACK, _PROVIDER, _NONE = 0, 1, -1


def declaration(stack: str, resources: Resources) -> dict[str, Any]:
    """The document; it holds the values of Secrets."""
    root = _entry("pulumi:pulumi:Stack", f"{PROJECT}-{stack}", {}, custom=False)
    provider = _entry("pulumi:providers:kubernetes", "kubernetes", resources.provider, resources.version, parent=_STACK)
    first = _PROVIDER + 1
    parts = range(first, first + len(resources.parts))
    objects = [
        *(_object(resource, resources.version) for resource in resources.parts),
        *(_object(resource, resources.version, parts) for resource in resources.workloads),
    ]
    return {"resources": [root, provider, *objects]}


def _object(resource: Resource, version: str, after: Sequence[int] = ()) -> dict[str, Any]:
    inputs = {name: value for name, value in resource.properties.items() if value is not None}
    entry = _entry(resource.type, resource.name, inputs, version, parent=_STACK)
    return {**entry, "provider": _PROVIDER, "secrets": sorted(resource.secrets), "after": list(after)}


def _entry(
    kind: str, name: str, inputs: Any, version: str = "", *, parent: int = _NONE, custom: bool = True
) -> dict[str, Any]:
    return {
        "type": kind,
        "name": name,
        "version": version,
        "inputs": inputs,
        "parent": parent,
        "provider": _NONE,
        "custom": custom,
    }
