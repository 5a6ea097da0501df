"""Which states may replace that of a stack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reside.model.errors import InvalidInput
from reside.sentinel.engine import count_objects, objects_of_state

STACK = {"urn": "urn:pulumi:demo::reside::pulumi:pulumi:Stack::reside-demo", "type": "pulumi:pulumi:Stack"}
PROVIDER = {
    "urn": "urn:pulumi:demo::reside::pulumi:providers:kubernetes::kubernetes",
    "type": "pulumi:providers:kubernetes",
}


def document(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}, **more}


def config_map(**more: Any) -> dict[str, Any]:
    urn = "urn:pulumi:demo::reside::pulumi:pulumi:Stack$kubernetes:core/v1:ConfigMap::a"
    return {"urn": urn, "id": "ns/a", "inputs": document(), "outputs": document(), **more}


def state(*resources: Any) -> bytes:
    return json.dumps({"version": 3, "deployment": {"resources": list(resources)}}).encode()


def test_a_state_of_the_stack_has_its_objects() -> None:
    content = state(STACK, PROVIDER, config_map())
    assert objects_of_state(content, "demo", "ns") == {"ConfigMap/a"}
    assert count_objects(content) == 1
    assert objects_of_state(b'{"version": 3, "deployment": {}}', "demo", "ns") == frozenset()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b'{"version": 4, "deployment": {}}',
        b'{"version": 3, "deployment": {"resources": [1]}}',
        state({}),
        state({**STACK, "urn": STACK["urn"].replace("demo", "other")}),
        state({**STACK, "type": "pulumi-nodejs:dynamic:Resource"}),
        state(config_map(id="ns/jazz")),
        state(config_map(id="other/a")),
        state(config_map(inputs=document("jazz"))),
        state(config_map(outputs=document(kind="Secret"))),
        state(config_map(outputs=document(apiVersion="v2"))),
        state(config_map(outputs=document(metadata={"name": "a", "namespace": "other"}))),
        state(config_map(inputs=None)),
        state(config_map(urn="urn:pulumi:demo::reside::kubernetes:core/v1:Node::a")),
    ],
)
def test_a_state_that_is_not_of_the_stack_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput, match="state"):
        objects_of_state(content, "demo", "ns")
