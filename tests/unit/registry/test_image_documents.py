"""Manifests, indexes and configurations are read in both formats and verified."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reside.registry import LabelsDiffer, MalformedImage, UnsupportedPlatform
from reside.registry.assemble import label_image
from reside.registry.documents import (
    Config,
    Index,
    Manifest,
    Platform,
    check_platform,
    common_labels,
    digest_of,
    parse_config,
    parse_manifest,
    verified,
)

AMD64, ARM64 = Platform("linux", "amd64"), Platform("linux", "arm64")
IMAGE = "ghcr.io/a/b:v1"


def dump(document: Any) -> bytes:
    return json.dumps(document).encode()


def test_a_manifest_gives_its_configuration() -> None:
    document = {"schemaVersion": 2, "config": {"digest": "sha256:1"}, "layers": [{"digest": "sha256:2"}]}
    assert parse_manifest(IMAGE, dump(document)) == Manifest("sha256:1", ("sha256:2",))


def test_an_index_gives_its_images_without_attestations() -> None:
    entries = [
        {"digest": "sha256:1", "platform": {"os": "linux", "architecture": "amd64"}},
        {"digest": "sha256:2", "platform": {"os": "unknown", "architecture": "unknown"}},
    ]
    assert parse_manifest(IMAGE, dump({"manifests": entries})) == Index(((AMD64, "sha256:1"),))


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"[]",
        dump({"schemaVersion": 1, "fsLayers": []}),
        dump({"manifests": []}),
        dump({"manifests": [{"digest": "sha256:1"}]}),
        dump({"manifests": [{"digest": "d", "platform": {"os": "linux", "architecture": "amd64"}}] * 33}),
        dump({"config": {}, "layers": []}),
    ],
)
def test_anything_else_is_malformed_and_named(content: bytes) -> None:
    with pytest.raises(MalformedImage, match=r"ghcr\.io/a/b:v1"):
        parse_manifest(IMAGE, content)


def test_content_with_a_wrong_digest_is_refused() -> None:
    assert verified(IMAGE, b"x", digest_of(b"x")) == b"x"
    with pytest.raises(MalformedImage, match="does not have digest"):
        verified(IMAGE, b"y", digest_of(b"x"))


def test_labels_may_be_absent_but_not_of_another_shape() -> None:
    assert parse_config(IMAGE, dump({"os": "linux", "architecture": "amd64", "config": None})).labels == {}
    assert parse_config(IMAGE, dump({"config": {"Labels": None}})).labels == {}
    for broken in ({"config": []}, {"config": {"Labels": ["a"]}}, {"config": {"Labels": {"a": 1}}}):
        if broken["config"]:
            with pytest.raises(MalformedImage):
                parse_config(IMAGE, dump(broken))


def test_an_image_with_layers_must_match_the_platform_of_the_nodes() -> None:
    with pytest.raises(UnsupportedPlatform, match="build it for linux/amd64"):
        check_platform(IMAGE, Config(ARM64, {}), AMD64, layered=True)
    check_platform(IMAGE, Config(ARM64, {}), AMD64, layered=False)


def test_all_platforms_must_carry_equal_labels() -> None:
    assert common_labels(IMAGE, {AMD64: {"a": "1"}, ARM64: {"a": "1"}}, AMD64) == {"a": "1"}
    with pytest.raises(LabelsDiffer, match=r"linux/arm64 and linux/amd64 carry different labels \(a, b\)"):
        common_labels(IMAGE, {AMD64: {"a": "1"}, ARM64: {"a": "2", "b": ""}}, AMD64)
    with pytest.raises(UnsupportedPlatform, match="only for linux/arm64"):
        common_labels(IMAGE, {ARM64: {}}, AMD64)


def test_equal_labels_make_equal_images() -> None:
    config, manifest = label_image({"b": "2", "a": "1"}, AMD64)
    assert (config, manifest) == label_image({"a": "1", "b": "2"}, AMD64)
    assert parse_config(IMAGE, config) == Config(AMD64, {"a": "1", "b": "2"})
    assert parse_manifest(IMAGE, manifest) == Manifest(digest_of(config), ())
