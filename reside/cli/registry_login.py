"""Credentials of registries for a cluster: a Docker configuration file becomes a Secret of Kubernetes.

Invariant: no message contains anything of the file but host names.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret

from reside.access.client import connect
from reside.model.constants import OPERATOR_MANAGER, REGISTRY_SECRET, REGISTRY_SECRET_KEY
from reside.model.errors import InvalidInput
from reside.seed.kubernetes import ensure_namespace

if TYPE_CHECKING:
    from pathlib import Path

    from reside.access.target import Target


def hint(namespace: str) -> str:
    """Return the command that creates the Secret, for who applies the manifest."""
    return (
        f"before you apply it: kubectl -n {namespace} create secret generic {REGISTRY_SECRET} "
        f"--type=kubernetes.io/dockerconfigjson --from-file={REGISTRY_SECRET_KEY}=FILE"
    )


def read_login(path: Path) -> str:
    """Return the logins of a Docker configuration as JSON, without its other members.

    Raises:
        InvalidInput: the file can't be read, or has no credentials that work on another machine.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"--registry-config {path} can't be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInput(f"--registry-config {path} is not JSON: name a config.json of Docker") from None
    auths = document.get("auths") if isinstance(document, dict) else None
    found = auths if isinstance(auths, dict) else {}
    usable = {host: login for host, entry in found.items() if (login := _usable(path, host, entry)) is not None}
    if not usable:
        raise InvalidInput(
            f"--registry-config {path} has no password of a registry (a credential helper keeps it?): log in with "
            "`docker --config FOLDER login HOST` to an empty folder, and name FOLDER/config.json"
        )
    return json.dumps({"auths": usable}, sort_keys=True)


def _usable(path: Path, host: str, entry: Any) -> dict[str, str] | None:
    """Return the login in the form that the kubelet and Alpha read; None if the entry has no password.

    Raises:
        InvalidInput: the entry has a token in place of a password, or is malformed.
    """
    if not isinstance(entry, dict):
        return None
    if entry.get("identitytoken"):
        raise InvalidInput(
            f"--registry-config {path} has an identity token for {host}, which the kubelet can't use: log in with a "
            "user and a password"
        )
    if entry.get("username") and entry.get("password"):
        return {"auth": base64.b64encode(f"{entry['username']}:{entry['password']}".encode()).decode()}
    if not entry.get("auth"):
        return None
    try:
        user, separator, _ = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    except (TypeError, ValueError):
        user, separator = "", ""
    if not (user and separator):
        raise InvalidInput(f"--registry-config {path}: the login of {host} is malformed: log in again")
    return {"auth": entry["auth"]}


async def store_login(target: Target, login: str) -> None:
    """Write the Secret with the credentials, and the namespace if it does not exist."""
    async with connect(target) as client:
        await ensure_namespace(client, target.namespace)
        secret = Secret(
            apiVersion="v1",
            kind="Secret",
            metadata=ObjectMeta(name=REGISTRY_SECRET, namespace=target.namespace),
            type="kubernetes.io/dockerconfigjson",
            stringData={REGISTRY_SECRET_KEY: login},
        )
        await client.apply(secret, field_manager=OPERATOR_MANAGER, force=True)
