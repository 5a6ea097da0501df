"""Credentials of registries for a cluster: a Docker configuration file becomes a Secret of Kubernetes.

Invariant: no message contains anything of the file but host names.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret

from reside.access.client import connect
from reside.model.constants import REGISTRY_SECRET, REGISTRY_SECRET_KEY
from reside.model.errors import InvalidInput
from reside.seed.kubernetes import ensure_namespace

if TYPE_CHECKING:
    from pathlib import Path

    from reside.access.target import Target

HINT = (
    f"before you apply it: kubectl create secret generic {REGISTRY_SECRET} --type=kubernetes.io/dockerconfigjson "
    f"--from-file={REGISTRY_SECRET_KEY}=FILE"
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
    usable = {host: login for host, login in (auths or {}).items() if _has_password(login)} if auths else {}
    if not usable:
        raise InvalidInput(
            f"--registry-config {path} has no password of a registry (a credential helper keeps it?): log in with "
            "`docker --config FOLDER login HOST` to an empty folder, and name FOLDER/config.json"
        )
    return json.dumps({"auths": usable}, sort_keys=True)


def _has_password(login: Any) -> bool:
    return isinstance(login, dict) and bool(login.get("auth") or (login.get("username") and login.get("password")))


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
        await client.apply(secret, field_manager="reside-cli", force=True)
