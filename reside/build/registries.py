"""The registries of the operator's side: mirrors, own certificate authorities, and the repository of ReSide's images.

Passwords come from Docker's configuration (`docker login`), in `reside.registry`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reside.build.source import registry_mirrors
from reside.common.tls import certificates, is_authority
from reside.model.errors import InvalidInput
from reside.model.locations import check_repository, located
from reside.registry import RegistryClient

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTHORITIES_VARIABLE: Final = "RESIDE_REGISTRY_AUTHORITIES"
REPOSITORY_VARIABLE: Final = "RESIDE_IMAGE_REPOSITORY"


def client_of_environment(local_cluster: str, repository: str | None = None) -> RegistryClient:
    """Return a client with the environment's mirrors and authorities.

    Args:
        local_cluster: the local cluster whose registry is used if the environment has no mirrors.
        repository: the repository with ReSide's images; None: that of the environment.

    Raises:
        InvalidInput: a variable is malformed; the message names it.
    """
    chosen = repository or os.environ.get(REPOSITORY_VARIABLE) or None
    if chosen is not None and repository is None:
        check_repository(chosen, REPOSITORY_VARIABLE)
    return RegistryClient(
        registry_mirrors(local_cluster), authorities=authorities(), locate=lambda name: located(name, chosen)
    )


def authorities() -> Mapping[str, str]:
    """Return registry host → PEM document: `RESIDE_REGISTRY_AUTHORITIES`, JSON of hosts and files or PEM documents.

    Raises:
        InvalidInput: the variable is not such JSON, or a file is not PEM.
    """
    text = os.environ.get(AUTHORITIES_VARIABLE)
    if not text:
        return {}
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise InvalidInput(f'{AUTHORITIES_VARIABLE} must be JSON such as {{"registry.example.org": "/etc/ca.pem"}}')
    return {
        host: value if is_authority(value) else read_authority(Path(value), f"{AUTHORITIES_VARIABLE} of {host}")
        for host, value in data.items()
    }


def read_authority(path: Path, setting: str) -> str:
    """Read a PEM file with a certificate authority.

    Raises:
        InvalidInput: it can't be read, or has no certificates; the message begins with `setting`.
    """
    try:
        pem = path.read_text(encoding="ascii")
    except OSError as error:
        raise InvalidInput(f"{setting}: {path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        pem = ""
    if not is_authority(pem):
        raise InvalidInput(f"{setting}: {path} is not a PEM file with certificates: convert it with `openssl x509`")
    return certificates(pem)
