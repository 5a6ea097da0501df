"""The Secret with credentials of registries, on a real API server."""

from __future__ import annotations

import base64
import json
import secrets
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.core_v1 import Secret

from reside.access.client import connect
from reside.access.target import Target
from reside.cli.registry_login import store_login
from reside.model.constants import REGISTRY_SECRET, REGISTRY_SECRET_KEY

if TYPE_CHECKING:
    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


async def test_new_credentials_replace_those_of_an_earlier_bootstrap(cluster: ClusterInfo) -> None:
    name = f"login-{secrets.token_hex(4)}"
    target = Target(name, "direct", str(cluster.kubeconfig), cluster.context, 20.0)
    for password in ("first", "second"):
        login = json.dumps({"auths": {"ghcr.io": {"auth": base64.b64encode(f"me:{password}".encode()).decode()}}})
        await store_login(target, login)
        async with connect(target) as client:
            found = await client.get(Secret, REGISTRY_SECRET)
        assert found.type == "kubernetes.io/dockerconfigjson"
        assert found.data is not None
        assert base64.b64decode(found.data[REGISTRY_SECRET_KEY]).decode() == login
