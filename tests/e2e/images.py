"""New images based on existing ones in the registry."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from support.platform import ROOT

from reside.build.context import Context
from reside.model.constants import MANIFEST_LABEL
from reside.model.manifest import encode_label, parse_manifest
from reside.registry import Bytes, Extension, ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.platform import Platform

_MANIFESTS = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"


def touched(platform: Platform, image: str) -> str:
    """Push a copy of an image that differs by one label only, and return its reference."""
    return _changed(platform, image)


def running(platform: Platform, image: str, command: Sequence[str]) -> str:
    """Push a copy of an image that runs another command, and return its reference."""
    return _changed(platform, image, Entrypoint=list(command), Cmd=[])


def without_contracts(platform: Platform, image: str) -> str:
    """Push a copy of an image whose manifest names no contract, so that nothing else depends on its instances."""
    identity = ImageReference.parse(image).identity
    info = {"name": identity.rpartition("/")[2], "class": "long-running", "exclusive": False, "scalable": True}
    label = encode_label(parse_manifest({"type": "replica", "identity": identity, "info": info}))
    return _changed(platform, image, Labels={MANIFEST_LABEL: label})


def unreadable(platform: Platform, image: str) -> str:
    """Push a copy of an image whose last layer is no archive, so that no node can unpack it; return its reference."""
    return _changed(platform, image, last_layer=b"not an archive")


def _changed(platform: Platform, image: str, *, last_layer: bytes | None = None, **members: Any) -> str:
    """Push a copy of an image with other members of its configuration, and return its reference."""
    reference = ImageReference.parse(image)
    tag = f"changed-{uuid.uuid4().hex[:8]}"
    base = f"http://{platform.info.registry_loopback}/v2/{reference.repository}"
    with httpx2.Client(trust_env=False, follow_redirects=True, timeout=30) as http:
        found = http.get(
            f"{base}/manifests/{reference.digest or reference.tag}", headers={"accept": _MANIFESTS}
        ).raise_for_status()
        manifest = found.json()
        config = http.get(f"{base}/blobs/{manifest['config']['digest']}").raise_for_status().json()
        config["config"] |= members
        config["config"]["Labels"] = {**(config["config"].get("Labels") or {}), "io.reside.test": tag}
        if last_layer is not None:  # a node does not pull a layer whose content, by its digest in the config, it has
            manifest["layers"][-1] |= (uploaded := _upload(http, base, last_layer))
            config["rootfs"]["diff_ids"][-1] = uploaded["digest"]
        manifest["config"] |= _upload(http, base, json.dumps(config).encode())
        http.put(
            f"{base}/manifests/{tag}",
            content=json.dumps(manifest),
            headers={"content-type": found.headers["content-type"]},
        ).raise_for_status()
    return f"{reference.identity}:{tag}"


def _upload(http: httpx2.Client, base: str, blob: bytes) -> dict[str, Any]:
    """Upload a blob, and return its digest and size as a manifest has them."""
    digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
    upload = http.post(f"{base}/blobs/uploads/").raise_for_status().headers["location"]
    target = httpx2.URL(f"{base}/").join(upload).copy_merge_params({"digest": digest})
    http.put(target, content=blob, headers={"content-type": "application/octet-stream"}).raise_for_status()
    return {"digest": digest, "size": len(blob)}


def stricter(platform: Platform, image: str) -> str:
    """Push an image of the Sentinel with one more rule: no object may be named `forbidden`. Return its reference.

    It is what an operator would make: a layer with another `reside/policy/rules.py`, and without the byte code of ours.
    """
    rules = (ROOT / "reside/policy/rules.py").read_text() + _HOUSE_RULE
    layer = io.BytesIO()
    context = Context(layer)
    context.data("opt/reside/reside/policy/rules.py", rules.encode())
    context.data("opt/reside/reside/policy/__pycache__/.wh.rules.cpython-311.pyc", b"")
    context.close()
    below = ImageReference.parse(image)
    reference = below.tagged("stricter")
    client = RegistryClient({below.registry: f"http://{platform.info.registry_loopback}"})
    anyio.run(client.extend, below, reference, Bytes(layer.getvalue()), Extension(author="tests"))
    return str(reference)


_HOUSE_RULE = '''

def house_rule(manifest: Manifest, _: Context) -> Iterator[str]:
    """A rule of this house."""
    if object_name(manifest).partition("/")[2].startswith("forbidden"):
        yield "nothing may be called forbidden"


RULES["house-rule"] = Rule(house_rule, "The name is taken.", "choose another name")
'''
