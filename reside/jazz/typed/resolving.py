"""Which references to load: a *resolve*, read from a function or nested mappings and checked against the schema.

The function receives a stand-in for the value. Each reference that it reads is loaded. So type checkers know all names
in it::

    lambda project: (project.owner, project.tasks.each.assignee)

The mappings are those of jazz-tools: `{"owner": True, "tasks": {"$each": {"assignee": True}}}`. With `tolerate` (or
`"$onError": "catch"`), an unavailable reference stays unloaded instead of raising an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from reside.jazz.typed.errors import SchemaError
from reside.jazz.typed.views import HasReferences

EACH: Final = "$each"
_ON_ERROR: Final = "$onError"

T = TypeVar("T")


@dataclass
class Spec:
    """What to load below a value.

    Attributes:
        names: maps each reference (`EACH` for all items) to what to load below it.
        tolerant: whether the reference may stay unloaded.
    """

    names: "dict[str, Spec]" = field(default_factory=dict)
    tolerant: bool = False

    def below(self, name: str) -> "Spec":
        """Return what to load below a reference; add the reference if it is new."""
        return self.names.setdefault(name, Spec())


def tolerate(reference: T) -> T:
    """Let a reference stay unloaded if it is unavailable or may not be read. Use it in a resolve function."""
    if not isinstance(reference, _PathRecorder):
        raise SchemaError("tolerate() expects a reference that a resolve function reads")
    spec: Spec = object.__getattribute__(reference, "_spec")
    spec.tolerant = True
    return reference


def read_resolve(model: type[HasReferences], resolve: Any) -> Spec:
    """Parse a resolve.

    Raises:
        SchemaError: it names something that is not a reference.
    """
    spec = Spec()
    if callable(resolve):
        resolve(_PathRecorder((model,), spec, model.__name__))
    elif resolve is not None and resolve is not True:
        _read(spec, (model,), resolve, model.__name__)
    return spec


def _read(spec: Spec, models: tuple[type, ...], resolve: Any, label: str) -> None:
    if resolve is True:
        return
    if not isinstance(resolve, Mapping):
        raise SchemaError(f"a resolve of {label} is True or a mapping of its references, not {resolve!r}")
    for name, below in resolve.items():
        if name == _ON_ERROR:
            spec.tolerant = below == "catch"
            continue
        name_here, targets = _targets(models, name, label)
        _read(spec.below(name_here), targets, below, f"{label}.{name}")


def _targets(models: tuple[type, ...], name: str, label: str) -> tuple[str, tuple[type, ...]]:
    """Return a reference's name in the schema, and its target classes."""
    known: list[str] = []
    for model in models:
        references = cast("type[HasReferences]", model)._references() if hasattr(model, "_references") else {}
        for spelled in (name, EACH if name == "each" else name):
            if spelled in references:
                return spelled, references[spelled].targets
        if EACH in references and getattr(model, "_has_keys", False):
            return name, references[EACH].targets
        known += references
    names = ", ".join(known) or "none"
    raise SchemaError(f"{label} has no reference {name} to resolve; it has: {names}")


class _PathRecorder:
    """A stand-in for a value in a resolve function; it records what is read."""

    def __init__(self, models: tuple[type, ...], spec: Spec, label: str) -> None:
        self._models, self._spec, self._label = models, spec, label

    def __getattr__(self, name: str) -> Any:
        name_here, targets = _targets(self._models, name, self._label)
        return _PathRecorder(targets, self._spec.below(name_here), f"{self._label}.{name}")

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            raise SchemaError(f"{self._label}: all items of a list are loaded: write .each, not [{key!r}]")
        return self.__getattr__(key)
