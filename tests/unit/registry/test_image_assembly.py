"""New images made of others: one more layer, the same layers below, the same format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reside.registry import Extension, MalformedImage
from reside.registry.assemble import extended_image, image_manifest
from reside.registry.documents import (
    DOCKER_LAYER,
    DOCKER_MANIFEST,
    OCI_LAYER,
    OCI_MANIFEST,
    Manifest,
    digest_of,
    parse_manifest,
)

CONFIG: dict[str, Any] = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2026-01-01T00:00:00Z",
    "config": {"Env": ["A=b"], "User": "65532", "Cmd": ["sh"], "Labels": {"below": "1"}, "WorkingDir": "/w"},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:d1"]},
    "history": [{"created_by": "below"}],
}
EXTENSION = Extension({"above": "2"}, "/app", ("python", "-m", "main"), "test")


def below(media_type: str) -> bytes:
    layer = {"mediaType": "some.gzip", "digest": "sha256:l1", "size": 3}
    config = {"mediaType": "some.config", "digest": "sha256:c1", "size": 4}
    document = {"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]}
    return json.dumps(document).encode()


@pytest.mark.parametrize(("media_type", "layer_type"), [(OCI_MANIFEST, OCI_LAYER), (DOCKER_MANIFEST, DOCKER_LAYER)])
def test_a_layer_is_added_in_the_format_of_the_parent_image(media_type: str, layer_type: str) -> None:
    layer = ("sha256:l2", 7)
    raw, manifest, written_type = extended_image(
        "image", below(media_type), json.dumps(CONFIG).encode(), layer, EXTENSION
    )
    document = json.loads(manifest)
    assert written_type == document["mediaType"] == media_type
    assert document["layers"] == [
        {"mediaType": "some.gzip", "digest": "sha256:l1", "size": 3},
        {"mediaType": layer_type, "digest": "sha256:l2", "size": 7},
    ]
    assert document["config"] == {"mediaType": "some.config", "digest": digest_of(raw), "size": len(raw)}


def test_the_configuration_keeps_the_base_and_adds_the_extension() -> None:
    raw, _, _ = extended_image("image", below(OCI_MANIFEST), json.dumps(CONFIG).encode(), ("sha256:l2", 7), EXTENSION)
    config = json.loads(raw)
    assert config["config"] == {
        "Env": ["A=b"],
        "User": "65532",
        "Cmd": None,
        "Entrypoint": ["python", "-m", "main"],
        "WorkingDir": "/app",
        "Labels": {"below": "1", "above": "2"},
    }
    assert config["rootfs"]["diff_ids"] == ["sha256:d1", "sha256:l2"]
    assert [step["created_by"] for step in config["history"]] == ["below", "test"]
    assert "created" not in config


def test_without_a_layer_only_the_configuration_changes() -> None:
    raw, manifest, _ = extended_image(
        "image", below(OCI_MANIFEST), json.dumps(CONFIG).encode(), None, Extension({"above": "2"})
    )
    config = json.loads(raw)
    assert len(json.loads(manifest)["layers"]) == 1
    assert config["rootfs"]["diff_ids"] == ["sha256:d1"]
    assert config["history"][-1]["empty_layer"] is True
    assert (config["config"]["Cmd"], config["config"]["WorkingDir"]) == (["sh"], "/w")


def test_a_written_manifest_is_read_back() -> None:
    manifest = image_manifest(b"{}", [("sha256:l1", 3), ("sha256:l2", 4)])
    assert parse_manifest("image", manifest) == Manifest(digest_of(b"{}"), ("sha256:l1", "sha256:l2"))


@pytest.mark.parametrize("rootfs", [{"type": "layers"}, {"diff_ids": {}}, "layers"])
def test_a_configuration_that_does_not_list_its_layers_is_refused(rootfs: object) -> None:
    config = json.dumps({**CONFIG, "rootfs": rootfs}).encode()
    with pytest.raises(MalformedImage, match="does not list its layers"):
        extended_image("image", below(OCI_MANIFEST), config, ("sha256:l2", 7), EXTENSION)
