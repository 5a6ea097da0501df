"""The objects that the stored stacks desire, by `Kind/name`, with their secret values filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reside.common.transience import safe_text
from reside.model.applied import as_applied
from reside.model.errors import ResideError
from reside.sentinel.objects.identity import split_key
from reside.sentinel.objects.packed import pack, unpack
from reside.sentinel.objects.secrets import all_references, filled, live_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.cache import ObjectCache
    from reside.sentinel.objects.packed import Packed
    from reside.sentinel.objects.secrets import Reference
    from reside.sentinel.store.stacks import StackStore, StoredStack
    from reside.sentinel.store.vault import Vault


@dataclass(frozen=True, slots=True)
class Desired:
    """An object that a stored stack desires; `fault` says why it is None."""

    stack: str
    namespace: str
    packed: Packed | None
    fault: str | None = None

    @property
    def object(self) -> K8sObject | None:
        """The object, as it is applied."""
        return None if self.packed is None else as_applied(unpack(self.packed), self.namespace)


class DesiredObjects:
    """The desired objects of all stored stacks, as they were when each stack was read last.

    Args:
        namespace: where objects without a namespace are applied.
        store: the last validated stacks.
        vault: secret values.
        cache: the live objects; a live Secret keeps generated values that the vault does not have.
    """

    def __init__(self, namespace: str, store: StackStore, vault: Vault, cache: ObjectCache) -> None:
        self._namespace = namespace
        self._store = store
        self._vault = vault
        self._cache = cache
        self._of: dict[str, Desired] = {}
        self._made: dict[str, StoredStack] = {}
        """Stack → as it was stored when `_of` was made from it."""
        self._keys: dict[str, tuple[str, ...]] = {}
        """Stack → `Kind/name` of its objects in `_of`."""

    def __iter__(self) -> Iterator[str]:
        """Yield `Kind/name` of all desired objects."""
        return iter(self._of)

    def get(self, key: str) -> Desired | None:
        """Return a desired object; None if no stack has it."""
        return self._of.get(key)

    def keys_of(self, stack: str) -> tuple[str, ...]:
        """Return `Kind/name` of the objects of a stack; none if it does not exist."""
        return self._keys.get(stack, ())

    def stacks(self) -> set[str]:
        """Return the names of the stacks that were read or are stored."""
        return {*self._made, *self._store.stacks}

    def is_outdated(self, name: str) -> bool:
        """Return whether a stack, or a secret value of it, may have changed since it was read."""
        stored = self._store.stacks.get(name)
        return stored is None or self._made.get(name) is not stored or bool(_references(stored))

    def replace(self, name: str) -> list[str]:
        """Read a stack from the store again; return the objects that it no longer has."""
        stored = self._store.stacks.get(name)
        if stored is None:
            self._made.pop(name, None)
        else:
            self._made[name] = stored
        found = self._stack(stored) if stored else {}
        gone = []
        for key in self._keys.pop(name, ()):
            if (held := self._of.get(key)) is not None and held.stack == name:
                del self._of[key]
                if key not in found:
                    gone.append(key)
        if found:
            self._of |= found
            self._keys[name] = tuple(found)
        return gone

    def fill(self, name: str) -> None:
        """Fill in the secret values of a stack again: a live Secret may contain one that was missing."""
        if stored := self._store.stacks.get(name):
            self._of |= self._stack(stored)

    def reload(self, name: str) -> list[str]:
        """Read a stack and its secret values from the volume again; return the objects that it no longer has."""
        self._store.load_one(name)
        if (stored := self._store.stacks.get(name)) is not None:
            for reference in _references(stored):
                self._vault.load_one(stored.owner, reference.target)
        return self.replace(name)

    def _stack(self, stored: StoredStack) -> dict[str, Desired]:
        """Return the desired objects of a stack. Only Secrets are unpacked, because only they reference values."""
        found = stored.by_key_packed()
        return {
            key: self._resolved(stored, unpack(obj))
            if split_key(key)[0] == "Secret"
            else Desired(stored.name, self._namespace, obj)
            for key, obj in found.items()
        }

    def _resolved(self, stored: StoredStack, obj: K8sObject) -> Desired:
        def value_of(reference: Reference) -> str | None:
            kept = self._vault.get(stored.owner, reference.target)
            return kept if kept is not None else live_value(self._cache.get(reference.object), reference.key)

        try:
            return Desired(stored.name, self._namespace, pack(filled(obj, value_of)))
        except ResideError as error:
            return Desired(stored.name, self._namespace, None, safe_text(error))


def _references(stored: StoredStack) -> list[Reference]:
    """Return the secret references of a stack; none if one is malformed, which is a fault of its object."""
    try:
        found = stored.by_key()
        return all_references(found[key] for key in found if split_key(key)[0] == "Secret")
    except ResideError:
        return []
