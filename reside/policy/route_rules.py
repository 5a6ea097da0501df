"""What an HTTPRoute of the Gateway API may serve: the same as an Ingress. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.policy.shapes import mapping, mappings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.policy.context import Context
    from reside.policy.shapes import Manifest

_GROUP: Final = "gateway.networking.k8s.io"
_PATH_TYPES: Final = ("PathPrefix", "Exact")
_SPEC: Final = frozenset({"parentRefs", "hostnames", "rules"})
_RULE: Final = frozenset({"name", "matches", "backendRefs", "timeouts"})
_BACKEND: Final = frozenset({"group", "kind", "name", "port", "weight"})


def own_routes(manifest: Manifest, context: Context) -> Iterator[str]:
    """Let an HTTPRoute serve only paths below `/replicas/<stack>/`, by Services of its own stack, at gateways.

    Members that are not known to be harmless are refused, because filters send requests elsewhere or change paths.
    """
    spec = mapping(manifest, "spec")
    yield from _unknown("spec", spec, _SPEC)
    for parent in mappings(spec, "parentRefs"):
        if parent.get("group", _GROUP) != _GROUP or parent.get("kind", "Gateway") != "Gateway":
            yield f"its parent {parent.get('kind')} {parent.get('name')} is no Gateway: name the Gateway that serves it"
    rules = list(mappings(spec, "rules"))
    if not rules:
        yield "it has no rules, so it serves every path: name paths of this stack"
    for rule in rules:
        yield from _unknown("a rule", rule, _RULE)
        matches = list(mappings(rule, "matches"))
        if not matches:
            yield "a rule has no matches, so it serves every path: name paths of this stack"
        for match in matches:
            yield from _path(mapping(match, "path"), context)
        for backend in mappings(rule, "backendRefs"):
            yield from _backend(backend, context)


def _path(path: Manifest, context: Context) -> Iterator[str]:
    own, where, kind = f"/replicas/{context.stack}/", path.get("value"), path.get("type")
    if not isinstance(where, str) or not f"{where}/".startswith(own):
        yield f"path {where} is not below {own}: use a path of this stack"
    if kind not in _PATH_TYPES:
        yield f"path type {kind} lets the controller decide what the path means: use {' or '.join(_PATH_TYPES)}"


def _backend(backend: Manifest, context: Context) -> Iterator[str]:
    yield from _unknown("backendRefs", backend, _BACKEND)
    name = backend.get("name")
    is_service = backend.get("group", "") == "" and backend.get("kind", "Service") == "Service"
    if not is_service or f"Service/{name}" not in context.own:
        yield f"requests go to {backend.get('kind', 'Service')} {name}, which is no Service of this stack"


def _unknown(where: str, members: Manifest, known: frozenset[str]) -> Iterator[str]:
    if unknown := sorted(str(member) for member in members if member not in known):
        yield f"{', '.join(unknown)} in {where} may send requests elsewhere: remove it"
