"""The label io.reside.manifest: what is read, what is refused, and the messages."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.model.errors import InvalidManifest
from reside.model.manifest import decode_label, document, encode_label, parse_manifest

REPLICA: dict[str, Any] = {
    "type": "replica",
    "identity": "registry.example/replicas/one",
    "info": {"name": "one", "class": "long-running", "exclusive": True, "scalable": False},
    "displayInfo": {"en": {"title": "One", "description": ""}},
    "implementations": {"first": {"identity": "registry.example/contracts/first.v1"}},
    "requirements": {
        "second": {
            "identity": "registry.example/contracts/second.v1",
            "displayInfo": {},
            "optional": True,
            "multiple": False,
            "permissions": [{"name": "use", "instanceId": "x", "params": {"a": 1}}],
        }
    },
}
CONTRACT: dict[str, Any] = {
    "type": "contract",
    "identity": "registry.example/contracts/first.v1",
    "displayInfo": {},
    "permissions": {"use": {"displayInfo": {}, "instanceKeys": ["a"], "params": {"type": "object"}}},
    "methods": {"do": {"displayInfo": {}}},
}


def label(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("data", [REPLICA, CONTRACT])
def test_a_manifest_round_trips_through_the_label(data: dict[str, Any]) -> None:
    manifest = decode_label(label(json.dumps(data)))
    assert document(manifest) == data
    assert decode_label(encode_label(manifest)) == manifest


@pytest.mark.parametrize("data", [REPLICA, CONTRACT])
@pytest.mark.parametrize("member", ["packages", "avatarPrompt", "testingPackages"])
def test_members_that_only_the_first_implementation_knew_are_ignored(data: dict[str, Any], member: str) -> None:
    assert document(parse_manifest({**data, member: ["any"]})) == data


def test_an_image_without_probes_says_so() -> None:
    manifest = decode_label(label(json.dumps(REPLICA | {"health": "none"})))
    assert document(manifest) == REPLICA | {"health": "none"}


def test_equal_manifests_have_equal_labels() -> None:
    turned = dict(reversed(REPLICA.items()))
    assert encode_label(parse_manifest(REPLICA)) == encode_label(parse_manifest(turned))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("%%%", "not base64"),
        (label("{"), "not JSON"),
        (label('{"type": NaN}'), "not JSON"),
        (label("[" * 100_000), "not JSON"),
        (label("[" * 200 + "]" * 200), "nested deeper than 64"),
        (label(json.dumps(REPLICA | {"displayInfo": {"en": {"title": "\ud800"}}})), "not JSON"),
        (label('{"type": "replica"}'), "identity: Field required"),
        (label('{"type": "thing"}'), "does not match the schema"),
        (label(json.dumps(REPLICA | {"infos": {}})), "infos: Extra inputs are not permitted"),
        (label(json.dumps(REPLICA | {"health": "http"})), "health: Input should be 'none'"),
        (label(json.dumps(REPLICA | {"identity": "no spaces/x"})), "identity"),
        (label(json.dumps(REPLICA | {"info": REPLICA["info"] | {"name": "Not A Name"}})), "info.name"),
        (label(json.dumps(REPLICA | {"info": REPLICA["info"] | {"class": "sometimes"}})), "info.class"),
    ],
)
def test_a_bad_label_is_refused_naming_what_is_wrong(value: str, message: str) -> None:
    with pytest.raises(InvalidManifest, match=message):
        decode_label(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_label_is_either_refused_or_parsed(raw: bytes) -> None:
    with pytest.raises(InvalidManifest):
        decode_label(base64.b64encode(raw).decode())


@given(st.sampled_from(sorted(REPLICA)), JSON)
def test_any_member_is_either_refused_or_parsed(member: str, value: Any) -> None:
    try:
        manifest = decode_label(label(json.dumps(REPLICA | {member: value})))
    except InvalidManifest:
        return
    assert decode_label(encode_label(manifest)) == manifest
