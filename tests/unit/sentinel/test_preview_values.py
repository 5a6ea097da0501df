"""What a preview shows: values before and after at each path, live versions, and never a secret value."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.previews import ObjectChange, ValueChange
from reside.model.stacks import canonical
from reside.sentinel.objects.paths import steps, value_at
from reside.sentinel.objects.versions import live_version
from reside.sentinel.term.preview_values import LONGEST_PREVIEW, LONGEST_VALUE, shown_changes

SECRET = "correct-horse"
OLD_SECRET = 'battery "staple"'


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config_map(name: str, uid: str | None = None, **data: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}}
    meta |= {"uid": uid, "resourceVersion": "7", "managedFields": [{}]} if uid else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def shown(change: ObjectChange, desired: dict[str, Any] | None, live: dict[str, Any] | None) -> ObjectChange:
    """Return what is shown of the change of one object."""
    others = [] if desired is None else [desired]
    return shown_changes([change], others, {change.object: live}, "ns")[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("data.x", ("data", "x")),
        ("spec.containers[0].image", ("spec", "containers", 0, "image")),
        ('metadata.annotations["a.b/c"]', ("metadata", "annotations", "a.b/c")),
        ('data["a\\"b"].c', ("data", 'a"b', "c")),
        ("[1]", (1,)),
        ("a..b", ("a..b",)),
        ('data["open', ('data["open',)),
        ("", ()),
    ],
)
def test_a_path_has_members_and_indexes_and_what_is_no_path_is_one_member(path: str, expected: tuple[Any, ...]) -> None:
    assert steps(path) == expected


def test_a_path_to_nothing_has_no_value() -> None:
    obj = {"spec": {"ports": [{"port": 80}], "type": "ClusterIP"}}
    assert value_at(obj, "spec.ports[0].port") == 80
    for path in ("spec.ports[1].port", "spec.type.x", "spec.ports.port", "other", "spec[0]"):
        assert value_at(obj, path) is None


def test_an_update_shows_the_live_and_the_desired_value_of_each_path() -> None:
    change = ObjectChange("ConfigMap/a", "update", ("data.x", "data.y", 'data["z.z"]'))
    found = shown(change, config_map("a", x="2", y="1"), config_map("a", "u", x="1", **{"z.z": "old"}))
    assert found.values == (
        ValueChange("data.x", "1", "2"),
        ValueChange("data.y", None, "1"),
        ValueChange('data["z.z"]', "old", None),
    )
    assert found.live == "u version 7"


def test_what_is_created_or_deleted_is_shown_whole_without_the_bookkeeping_of_the_api_server() -> None:
    created = shown(ObjectChange("ConfigMap/a", "create"), config_map("a", x="1"), None)
    declared = {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}},
        "data": {"x": "1"},
    }
    assert created.values == (ValueChange("", None, declared),)
    assert created.live is None
    deleted = shown(ObjectChange("ConfigMap/a", "delete"), None, config_map("a", "u", x="1"))
    assert deleted.values == (ValueChange("", declared, None),)


def test_no_value_of_a_secret_is_shown_wherever_it_is() -> None:
    meta: dict[str, Any] = {"name": "s", "uid": "u", "resourceVersion": "1"}
    last = json.dumps({"data": {"key": encoded(OLD_SECRET)}, "stringData": {"key": OLD_SECRET}})
    meta["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "data": {"key": encoded(OLD_SECRET), "gone": "eA=="},
    }
    desired = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": SECRET}}
    thief = config_map("thief", copied=f"x{SECRET}y", code=encoded(SECRET), old=OLD_SECRET)
    paths = ("data.key", "data.gone", "data", "metadata.annotations", "metadata")
    changes = [ObjectChange("Secret/s", action, paths) for action in ("update", "replace", "create", "delete")]
    changes.append(ObjectChange("ConfigMap/thief", "create"))
    found = shown_changes(changes, [desired, thief], {"Secret/s": live, "ConfigMap/thief": None}, "ns")
    text = canonical([change.document() for change in found])
    for value in (SECRET, OLD_SECRET, encoded(SECRET), encoded(OLD_SECRET), json.dumps(OLD_SECRET)[1:-1], "eA=="):
        assert value not in text
    assert found[0].values[:3] == (
        ValueChange("data.key", "***", "***"),
        ValueChange("data.gone", "***", None),
        ValueChange("data", {"key": "***", "gone": "***"}, {"key": "***"}),
    )


def test_what_is_shown_has_a_limited_size() -> None:
    long = "x" * (LONGEST_VALUE + 1)
    change = ObjectChange("ConfigMap/a", "update", ("data.x",))
    (value,) = shown(change, config_map("a", x=long), None).values
    assert value.after.endswith(f"… ({len(long) + 2} characters)")
    many = [config_map(f"c{number}", x="x" * (LONGEST_VALUE - 300)) for number in range(40)]
    changes = [ObjectChange(f"ConfigMap/c{number}", "create") for number in range(40)]
    found = shown_changes(changes, many, {}, "ns")
    assert [change.object for change in found] == [change.object for change in changes]
    assert found[0].values
    assert not found[-1].values
    assert len(canonical([change.document() for change in found])) < LONGEST_PREVIEW + 40 * 100


def test_a_live_version_changes_with_what_was_asked_of_an_object_and_not_with_its_status() -> None:
    one = {"metadata": {"uid": "u", "generation": 1, "resourceVersion": "5"}}
    later = {"metadata": {"uid": "u", "generation": 1, "resourceVersion": "6"}, "status": {"readyReplicas": 1}}
    assert live_version(one) == live_version(later)
    assert len({live_version(None), live_version(one), live_version({"metadata": {"uid": "v", "generation": 1}})}) == 3
    assert live_version(config_map("a", "u")) != live_version(config_map("a", "v"))
