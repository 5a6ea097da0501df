"""Identities of ReSide's own images: its contracts, its replicas and the examples.

Code and manifests of every cluster name them `registry.reside.internal/reside/…` (`OWN`). In a cluster that was
bootstrapped with an `image_repository`, their identities are under that repository, which is the cluster's identity
repository. Whatever enters the cluster is resolved: a manifest with the names of `OWN` means the contracts of the
cluster that loads it. So an image has the same digest everywhere, and runs in each cluster.

Invariants: the identity repository of a cluster never changes, since stored data, permissions and paths contain it; a
process works with one cluster, so it has one identity repository: pods get theirs from the environment; the seed and
commands read it in the cluster, before they use any identity.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from reside.model.constants import ENV_PREFIX, OWN, SYSTEM_IDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_Value = TypeVar("_Value")
VARIABLE: Final = f"{ENV_PREFIX}IDENTITY_REPOSITORY"
"""Environment variable with the identity repository, in pods of a cluster in which it is not `OWN`."""


@dataclass
class _Process:
    repository: str


_process: Final = _Process(os.environ.get(VARIABLE) or OWN)


def repository() -> str:
    """Return the identity repository of the cluster with which this process works."""
    return _process.repository


def use(repository: str) -> None:
    """Let this process work with a cluster that has this identity repository."""
    _process.repository = repository


def resolved(name: str) -> str:
    """Return the identity in this cluster that a name means; a tag or digest after it is kept.

    It is another one than the name only for names under `OWN`, in a cluster with another identity repository.
    """
    if _process.repository == OWN or not name.startswith(f"{OWN}/"):
        return name
    return _process.repository + name[len(OWN) :]


def system_id(identity: str) -> int | None:
    """Return the replica id that a replica with this identity has in each cluster; None if it is no system replica."""
    return next((number for name, number in SYSTEM_IDS.items() if resolved(name) == identity), None)


def repository_in(identities: Iterable[str], name: str) -> str | None:
    """Return the identity repository of a cluster in which one of these identities is that of an own image.

    Args:
        identities: for example those of the contracts that Alpha implements.
        name: the image's name under `OWN`; None is returned if none of the identities ends with its path.
    """
    path = name[len(OWN) :]
    return next((identity.removesuffix(path) for identity in identities if identity.endswith(path)), None)


class ByContract(Mapping[str, _Value]):
    """What belongs to contracts, by identity; it is also found by the name that code has of a contract."""

    def __init__(self, values: Mapping[str, _Value] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> _Value:
        return self._values[resolved(name)]

    def __setitem__(self, name: str, value: _Value) -> None:
        self._values[resolved(name)] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
