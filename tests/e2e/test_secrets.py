"""No secret stands in plain in a state file, a log, a volume or in Jazz's database.

What is looked through: the bootstrap's Pulumi state and logs, the Sentinel's volume (its Pulumi state included), Jazz's
database, every pod's log, and every object of the namespace but Secrets. The API server's own etcd is left out: it
holds the Secrets themselves.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def _secrets(platform: Platform) -> dict[str, list[bytes]]:
    """What must not be found, as it is and in base64, by ``Secret/key``."""
    found = {}
    for secret in platform.get("secrets")["items"]:
        for key, value in platform.secret(secret["metadata"]["name"]).items():
            if key != "accountId":
                parts = value.split("/") if key == "agentSecret" else [value]
                found[f"{secret['metadata']['name']}/{key}"] = [
                    form for part in parts for form in (part.encode(), b64encode(part.encode()).rstrip(b"="))
                ]
    return found


def _volumes(platform: Platform) -> list[Path]:
    """Folders of the namespace's volumes on this machine."""
    volumes = [v for v in platform.get("pv")["items"] if v["spec"]["claimRef"]["namespace"] == platform.namespace]
    return [Path((v["spec"].get("hostPath") or v["spec"]["local"])["path"]) for v in volumes]


def _places(platform: Platform) -> Iterator[tuple[str, bytes]]:
    for folder in (platform.folder / "state", *_volumes(platform)):
        assert folder.exists(), folder
        for file in folder.rglob("*"):
            if file.is_file():
                yield str(file), file.read_bytes()
    for pod in platform.get("pods")["items"]:
        name = pod["metadata"]["name"]
        yield f"log of {name}", platform.kubectl("logs", name).encode()
    objects = "pods,deployments,statefulsets,jobs,configmaps,events"
    yield "objects", platform.kubectl("get", objects, "-o", "yaml").encode()
    yield "output of make up", platform.up_output.encode()


def test_no_secret_stands_in_plain(platform: Platform) -> None:
    secrets = _secrets(platform)
    assert {"alpha/agentSecret", "greeter/agentSecret", "kubernetes-sentinel-engine/passphrase"} <= secrets.keys()
    places = dict(_places(platform))
    assert any(".pulumi" in place for place in places), "no Pulumi state was found to look through"
    assert any(place.endswith("/jazz.db") for place in places), "Jazz's database was not found"
    leaks = [
        f"{name} in {place}"
        for name, forms in secrets.items()
        for place, content in places.items()
        if any(form in content for form in forms)
    ]
    assert leaks == []
