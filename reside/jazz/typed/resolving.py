"""Which references to load: read from a function or from nested mappings, and checked against the schema.

The function gets a stand-in for the value, on which every reference can be read: what it reads is loaded. So a type
checker knows all names in it::

    lambda project: (project.owner, project.tasks.each.assignee)

The mappings are jazz-tools': `{"owner": True, "tasks": {"$each": {"assignee": True}}}`. `tolerate` (or
`"$onError": "catch"`) lets a reference stay unloaded that can't be had.
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
        names: For each reference (`EACH` for all items) what to load below it.
        tolerant: Whether it may stay unloaded.
    """

    names: "dict[str, Spec]" = field(default_factory=dict)
    tolerant: bool = False

    def below(self, name: str) -> "Spec":
        """What to load below a reference, made if it is new."""
        return self.names.setdefault(name, Spec())


def tolerate(reference: T) -> T:
    """In a resolve function: this reference may stay unloaded, if it can't be had or may not be read."""
    if not isinstance(reference, _PathRecorder):
        raise SchemaError("tolerate() belongs around a reference in a resolve function")
    spec: Spec = object.__getattribute__(reference, "_spec")
    spec.tolerant = True
    return reference


def read_resolve(model: type[HasReferences], resolve: Any) -> Spec:
    """What a resolve says.

    Raises:
        SchemaError: It names what is no reference.
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
    """The classes behind a reference, with its name as the schema has it."""
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
    """Stands for a value in a resolve function, and notes what is read of it."""

    def __init__(self, models: tuple[type, ...], spec: Spec, label: str) -> None:
        self._models, self._spec, self._label = models, spec, label

    def __getattr__(self, name: str) -> Any:
        name_here, targets = _targets(self._models, name, self._label)
        return _PathRecorder(targets, self._spec.below(name_here), f"{self._label}.{name}")

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            raise SchemaError(f"{self._label}: of a list all items are loaded: .each, not [{key!r}]")
        return self.__getattr__(key)
