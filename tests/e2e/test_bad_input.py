"""Bad input leads to an invalid request, exit code 1, and a message that names problem and cure.

Who may create and decide load requests, and when, is tested in test_load_approval; policy violations are tested in
test_declared_objects.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml
from e2e.outages import without_registry
from support.platform import REGISTRY, ROOT

from reside.registry import ImageReference, RegistryClient

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def _manifest(name: str, **changes: Any) -> dict[str, Any]:
    manifest = yaml.safe_load((ROOT / "examples/replicas/report/replica.yaml").read_text())
    manifest["identity"] = f"{REGISTRY}/{name}"
    manifest["info"]["name"] = name
    return {**manifest, **changes}


def _push(platform: Platform, name: str, labels: dict[str, str]) -> str:
    """Push an image that consists of labels only; return its reference."""
    image = f"{REGISTRY}/{name}:v1"
    client = RegistryClient({"registry.reside.internal": f"http://{platform.info.registry_loopback}"})
    anyio.run(client.push_label_image, ImageReference.parse(image), labels)
    return image


def _label(document: Any) -> dict[str, str]:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return {"io.reside.manifest": b64encode(text).decode()}


def _refused(platform: Platform, image: str, *words: str, args: tuple[str, ...] = ()) -> None:
    result = platform.load(image, *args, check=False)
    text = " ".join(f"{result.stdout} {result.stderr}".split())
    assert result.returncode == 1, text
    assert "Traceback" not in text
    for word in ("is invalid", *words):
        assert word in text


def test_a_missing_image(platform: Platform) -> None:
    _refused(platform, f"{REGISTRY}/nobody:v1", "nobody", "no such image")


def test_a_registry_that_is_down_and_the_same_load_when_it_is_back(platform: Platform) -> None:
    image = platform.build("examples/replicas/report", "v1")
    name = ("--name", "patient")
    with without_registry(platform):
        _refused(
            platform,
            image,
            "registry.reside.internal",
            "can't be reached",
            "when the registry is available again",
            args=name,
        )
    platform.load(image, *name)


def test_a_reference_without_a_registry_makes_no_request(platform: Platform) -> None:
    before = platform.reside("request", "list", "--all", "--output", "name").stdout
    result = platform.load("greeter", check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert "image 'greeter': it has no registry host: write the full name, such as" in " ".join(result.stderr.split())
    assert platform.reside("request", "list", "--all", "--output", "name").stdout == before


def test_an_image_without_the_label(platform: Platform) -> None:
    _refused(platform, _push(platform, "bare", {}), "io.reside.manifest", "reside build")


def test_a_label_that_is_not_base64(platform: Platform) -> None:
    _refused(platform, _push(platform, "garbled", {"io.reside.manifest": "%%%"}), "base64")


def test_a_label_that_is_not_json(platform: Platform) -> None:
    _refused(platform, _push(platform, "nojson", _label(b"{")), "JSON")


def test_a_label_that_is_not_our_schema(platform: Platform) -> None:
    _refused(platform, _push(platform, "noschema", _label(_manifest("noschema", shape="odd"))), "schema", "shape")


def test_an_identity_of_another_image(platform: Platform) -> None:
    _refused(platform, _push(platform, "impostor", _label(_manifest("greeter"))), f"{REGISTRY}/greeter", "impostor")


def test_a_contract_that_does_not_exist(platform: Platform) -> None:
    missing = "registry.reside.internal/reside/contracts/missing.v1"
    manifest = _manifest("lonely", requirements={"it": {"identity": missing}})
    _refused(platform, _push(platform, "lonely", _label(manifest)), missing)


def test_a_permission_that_does_not_exist(platform: Platform) -> None:
    wanted = {"identity": "registry.reside.internal/reside/contracts/greeting.v1", "permissions": [{"name": "bow"}]}
    _refused(
        platform,
        _push(platform, "bower", _label(_manifest("bower", requirements={"it": wanted}))),
        "bow",
        "greeting.v1",
    )


def test_the_same_contract_twice(platform: Platform) -> None:
    greeting = {"identity": "registry.reside.internal/reside/contracts/greeting.v1"}
    manifest = _manifest("twice", implementations={"one": greeting, "two": greeting})
    _refused(platform, _push(platform, "twice", _label(manifest)), "greeting.v1", "twice")


def test_an_info_that_changed(platform: Platform) -> None:
    greeter = platform.replicas()["greeter"]
    manifest = _manifest("greeter")
    manifest["info"] = {"name": "greeter", "class": "oneshot", "exclusive": False, "scalable": True}
    image = _push(platform, "greeter", _label(manifest))
    _refused(platform, image, "info", "oneshot", args=("--replica-id", str(greeter["id"])))
    assert platform.replicas()["greeter"]["version"] == greeter["version"]


def test_an_object_that_another_manager_owns(platform: Platform) -> None:
    platform.kubectl("create", "secret", "generic", "taken", "--from-literal=key=theirs")
    image = platform.build("examples/replicas/report", "v1")
    _refused(platform, image, "Secret/taken", "kubectl-create", args=("--name", "taken"))
    assert platform.secret("taken") == {"key": "theirs"}
    platform.kubectl("delete", "secret", "taken")


def test_a_second_claim_of_super_admin(platform: Platform) -> None:
    result = platform.as_other_operator().reside("cluster", "claim-super-admin-access", check=False)
    assert result.returncode == 1
    assert "super admin" in result.stderr.lower()
