"""Turns the Kubernetes objects of a stack into its declaration.

A resource is made from an object by its type token, so Pulumi's large generated SDK for Kubernetes is not needed. Every
object is applied under the field manager `kubernetes-sentinel`. The engine does not wait until an object is ready,
because the Sentinel observes that itself. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.model.applied import as_applied, token
from reside.model.constants import REPLACE_ANNOTATION
from reside.model.stacks import object_key
from reside.sentinel.engine.declaration import NONE, STACK_TYPE, Declaration, DeclaredResource
from reside.sentinel.engine.settings import PROJECT
from reside.sentinel.objects.identity import is_kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reside.model.stacks import K8sObject

_WORKLOADS = frozenset({"Deployment", "StatefulSet", "Job"})
"""Kinds that are created after all other objects of the stack, which they use."""
_STACK: Final = 0
_PROVIDER: Final = 1
_FIRST_OBJECT: Final = 2


@dataclass(frozen=True)
class ProviderSettings:
    """The Kubernetes provider of a stack.

    The kubeconfig comes from the environment (KUBECONFIG), so the state does not contain its path. The identity of the
    cluster is the name of the namespace, so a change of the API server's address does not replace all objects.

    Attributes:
        version: the version of the plugin.
        namespace: the namespace of all objects.
        context: the context of the kubeconfig; None uses its current context.
    """

    version: str
    namespace: str
    context: str | None = None


def declare_stack(
    name: str,
    objects: Iterable[K8sObject],
    provider: ProviderSettings,
    expected: Mapping[str, Mapping[str, str]] | None = None,
) -> Declaration:
    """Return the declaration of a stack that contains exactly `objects`.

    Args:
        name: the name of the stack.
        objects: its objects.
        provider: their provider.
        expected: see `StackSpec`.
    """
    known = expected or {}
    applied = [as_applied(each, provider.namespace) for each in objects]
    parts = [each for each in applied if each["kind"] not in _WORKLOADS]
    workloads = [each for each in applied if each["kind"] in _WORKLOADS]
    after = range(_FIRST_OBJECT, _FIRST_OBJECT + len(parts))
    return Declaration(
        resources=(
            _resource(STACK_TYPE, f"{PROJECT}-{name}", {}, custom=False),
            _resource(
                "pulumi:providers:kubernetes", "kubernetes", _inputs(provider), version=provider.version, parent=_STACK
            ),
            *(_object(each, provider.version, known.get(object_key(each))) for each in parts),
            *(_object(each, provider.version, known.get(object_key(each)), after) for each in workloads),
        )
    )


def _inputs(provider: ProviderSettings) -> dict[str, Any]:
    inputs = {
        "namespace": provider.namespace,
        "clusterIdentifier": f"reside/{provider.namespace}",
        "enableConfigMapMutable": "true",
        "enableSecretMutable": "true",
        "suppressDeprecationWarnings": "true",
    }
    return {**inputs, "context": provider.context} if provider.context else inputs


def may_be_replaced(obj: K8sObject) -> bool:
    """Return whether an object may be deleted and recreated for a change that Kubernetes does not allow.

    A Job has nothing to lose, and its template can't be changed otherwise.
    """
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return not is_kept(obj) and (obj.get("kind") == "Job" or annotations.get(REPLACE_ANNOTATION) == "true")


def _object(
    applied: K8sObject, version: str, expected: Mapping[str, str] | None, after: Sequence[int] = ()
) -> DeclaredResource:
    inputs = {name: value for name, value in applied.items() if value is not None}
    return _resource(
        token(applied),
        applied["metadata"]["name"],
        inputs,
        version=version,
        secrets=("data",) if applied["kind"] == "Secret" and "data" in inputs else (),
        parent=_STACK,
        provider=_PROVIDER,
        after=after,
        retain=is_kept(applied),
        replace=may_be_replaced(applied),
        creating={"metadata": dict(expected)} if expected else {},
    )


def _resource(
    kind: str,
    name: str,
    inputs: dict[str, Any],
    *,
    version: str = "",
    secrets: tuple[str, ...] = (),
    parent: int = NONE,
    provider: int = NONE,
    custom: bool = True,
    after: Sequence[int] = (),
    retain: bool = False,
    replace: bool = True,
    creating: dict[str, Any] | None = None,
) -> DeclaredResource:
    return DeclaredResource(
        type=kind,
        name=name,
        version=version,
        inputs=inputs,
        secrets=secrets,
        parent=parent,
        provider=provider,
        custom=custom,
        after=tuple(after),
        retain=retain,
        replace=replace,
        creating=creating or {},
    )
