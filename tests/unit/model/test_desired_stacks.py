"""Desired stacks: revisions follow content alone; unknown kinds are refused."""

from __future__ import annotations

import pytest

from reside.model.errors import InvalidInput
from reside.model.stacks import DesiredStack, ObjectChange, ObjectReport, StackPreview, object_key

ONE = {"kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1", "b": "2"}}
TWO = {"kind": "Service", "metadata": {"name": "two"}}


def test_the_revision_does_not_depend_on_any_order() -> None:
    turned = {"data": {"b": "2", "a": "1"}, "metadata": {"name": "one"}, "kind": "ConfigMap"}
    assert DesiredStack("s", "o", (ONE, TWO)).revision == DesiredStack("s", "o", (TWO, turned)).revision


def test_the_revision_depends_on_name_owner_and_objects() -> None:
    base = DesiredStack("s", "o", (ONE,)).revision
    others = [DesiredStack("t", "o", (ONE,)), DesiredStack("s", "p", (ONE,)), DesiredStack("s", "o", (TWO,))]
    assert len({base, *(stack.revision for stack in others)}) == 4


def test_keys_are_kind_and_name() -> None:
    assert DesiredStack("s", "o", (ONE, TWO)).keys() == ("ConfigMap/one", "Service/two")


@pytest.mark.parametrize("manifest", [{}, {"kind": "Pod", "metadata": {"name": "x"}}, {"kind": "Service"}])
def test_an_object_that_no_stack_may_hold_is_refused(manifest: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="can't stand in a stack"):
        object_key(manifest)


def test_previews_and_reports_survive_the_way_through_json() -> None:
    preview = StackPreview("s", "r", (ObjectChange("Service/two", "update", ("spec.ports",)),), ("no tags: x",), None)
    assert StackPreview.parse(preview.document()) == preview
    assert not preview.applicable
    report = ObjectReport("error", {"kind": "Service"}, "refused")
    assert ObjectReport.parse(report.document()) == report
    assert ObjectReport.parse({"status": "fine"}) is None
