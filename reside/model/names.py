"""Names of instances and of their Kubernetes objects.

Invariants: an instance's name is a DNS-1035 label of at most 40 characters, so that `<name>-<version>` with the suffix
that Kubernetes appends stays below 63; no two instances and open load requests have the same name.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from reside.model.errors import InvalidName

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_NAME = 40
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
RESERVED = frozenset({"jazz", "etcd", "platform", "kubernetes"})


def check_name(name: str) -> str:
    """Return `name` if an instance may have it.

    Raises:
        InvalidName: it is not a DNS-1035 label, is longer than 40 characters, or is reserved for the platform.
    """
    if not _DNS_1035.fullmatch(name) or len(name) > MAX_NAME:
        raise InvalidName(
            f"name {name!r} is invalid: use at most {MAX_NAME} lower-case letters, digits and '-', "
            "starting with a letter and not ending with '-'"
        )
    if name in RESERVED:
        raise InvalidName(f"name {name!r} is reserved for the platform: choose another one")
    return name


def candidate_names(preferred: str) -> Iterator[str]:
    """Yield `preferred`, `preferred-1`, `preferred-2` and so on, without end.

    The stem is shortened if the number would make the name longer than 40 characters.

    Raises:
        InvalidName: `preferred` is invalid.
    """
    yield check_name(preferred)
    for number in count(1):
        suffix = f"-{number}"
        yield preferred[: MAX_NAME - len(suffix)].rstrip("-") + suffix


def workload_name(replica: str, version: int) -> str:
    """Return the name of the Deployment or Job that runs one version of a replica."""
    return f"{replica}-{version}"
