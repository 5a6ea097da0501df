"""Names of instances and of their Kubernetes objects.

Invariants: an instance's name is a DNS-1035 label of at most 40 characters (so that ``<name>-<version>`` and what
Kubernetes appends stay below 63); two instances never bear the same name, names of open load requests included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reside.model.errors import InvalidName

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_NAME = 40
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
RESERVED = frozenset({"jazz", "etcd", "platform", "kubernetes"})


def check_name(name: str) -> str:
    """Return ``name`` if an instance may bear it.

    Raises:
        InvalidName: it is no DNS-1035 label, longer than 40 characters, or belongs to the platform.
    """
    if not _DNS_1035.fullmatch(name) or len(name) > MAX_NAME:
        raise InvalidName(
            f"name {name!r} can't be used: take at most {MAX_NAME} lower-case letters, digits and '-', "
            "starting with a letter and not ending with '-'"
        )
    if name in RESERVED:
        raise InvalidName(f"name {name!r} belongs to the platform: choose another")
    return name


def free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted`` if it is free, otherwise the first free one of ``wanted-1``, ``wanted-2`` and so on.

    The stem is shortened where the number would make it longer than 40 characters.
    """
    check_name(wanted)
    if wanted not in taken:
        return wanted
    number = 1
    while True:
        suffix = f"-{number}"
        candidate = wanted[: MAX_NAME - len(suffix)].rstrip("-") + suffix
        if candidate not in taken:
            return candidate
        number += 1


def workload_name(replica: str, version: int) -> str:
    """Name of the Deployment or Job that runs one version of a replica."""
    return f"{replica}-{version}"
