"""Desired stacks, previews and reports: revisions depend on content alone; documents are checked when they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from reside.model.errors import InvalidInput
from reside.model.previews import ObjectChange, StackPreview, ValueChange
from reside.model.reports import ObjectReport, StackReport
from reside.model.stacks import DesiredStack, object_key

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = {"kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1", "b": "2"}}
TWO = {"kind": "Service", "metadata": {"name": "two"}}
PREVIEW = {"stack": "s", "revision": "r", "changes": [], "violations": []}


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
def test_an_object_that_no_stack_can_contain_is_refused(manifest: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="can't be in a stack"):
        object_key(manifest)


def test_documents_round_trip() -> None:
    stack = DesiredStack("s", "o", (ONE, TWO))
    assert DesiredStack.parse(stack.document()) == stack
    preview = StackPreview("s", "r", (ObjectChange("Service/two", "update", ("spec.ports",)),), ("no tags: x",), None)
    assert StackPreview.parse(preview.document()) == preview
    assert not preview.applicable
    values = (ValueChange("spec.ports", None, [80]), ValueChange("spec.type", "NodePort", None))
    change = ObjectChange("Service/two", "update", ("spec.ports", "spec.type"), "uid generation 1", values)
    assert StackPreview.parse(StackPreview("s", "r", (change,)).document()).changes == (change,)
    bare = StackPreview("s", "r", (replace(change, values=()), ObjectChange("Job/x", "same")))
    assert bare.with_values({"Service/two": [value.document() for value in values]}).changes[0] == change
    assert bare.live_versions == {"Service/two": "uid generation 1"}
    report = ObjectReport("error", {"kind": "Service"}, "refused")
    assert ObjectReport.parse(report.document() | {"live": report.live}) == report, (
        "as an earlier release has stored it"
    )
    whole = StackReport("r", "failed", {"Service/two": report, "ConfigMap/one": ObjectReport("requested")})
    live = whole.live_by_kind()
    assert live == {"Service": {"Service/two": {"kind": "Service"}}}
    assert StackReport.parse(whole.document(), live["Service"]) == whole


def test_members_are_those_that_are_stored_in_jazz() -> None:
    stack = DesiredStack("s", "o", (ONE,))
    assert stack.document() == {"name": "s", "owner": "o", "revision": stack.revision, "objects": [ONE]}
    report = StackReport("r", None, {"Service/two": ObjectReport("updated", TWO)})
    object_report = {"status": "updated", "error": None}
    assert report.document() == {"revision": "r", "error": None, "Service/two": object_report}


def test_a_report_that_has_not_been_filled_in_yet_is_empty() -> None:
    assert StackReport.parse({}) == StackReport()
    assert StackReport.parse({"revision": None, "error": ""}) == StackReport()


def test_members_of_a_newer_writer_are_ignored() -> None:
    preview = StackPreview("s", "r")
    assert StackPreview.parse(preview.document() | {"candidate": "co_z"}) == preview
    assert StackReport.parse({"revision": "r", "other": 1}) == StackReport("r")
    assert DesiredStack.parse({"name": "s", "owner": "o", "objects": [], "other": 1}) == DesiredStack("s", "o", ())


@pytest.mark.parametrize(
    ("parse", "document", "message"),
    [
        (DesiredStack.parse, {"owner": "o", "objects": []}, "member name"),
        (DesiredStack.parse, {"name": "s", "owner": 1, "objects": []}, "stack 's': member owner"),
        (DesiredStack.parse, {"name": "s", "owner": "o"}, "member objects must be a list"),
        (DesiredStack.parse, {"name": "s", "owner": "o", "objects": {}}, "member objects must be a list"),
        (DesiredStack.parse, {"name": "s", "owner": "o", "objects": ["x"]}, "member objects must be a list"),
        (DesiredStack.parse, {"name": "s", "owner": "o", "objects": [{"kind": "Service", "metadata": []}]}, "metadata"),
        (DesiredStack.parse, {"name": "s", "owner": "o", "objects": [{"kind": [], "metadata": {}}]}, "no kind"),
        (DesiredStack.parse, {"name": "s", "owner": "o", "objects": [{"kind": "Pod", "metadata": {}}]}, "Pod/None"),
        (StackReport.parse, {"revision": 3}, "stack report: member revision"),
        (StackReport.parse, {"error": ["x"]}, "member error"),
        (StackReport.parse, {"Service/b": "nonsense"}, "member Service/b: it must be a JSON object"),
        (StackReport.parse, {"Service/b": {"status": "fine"}}, "member Service/b: member status"),
        (StackReport.parse, {"Service/b": {"status": "updated", "live": 1}}, "member Service/b: member live"),
        (StackPreview.parse, None, "must be a JSON object"),
        (StackPreview.parse, {}, "member changes"),
        (StackPreview.parse, {"changes": 3}, "member changes"),
        (StackPreview.parse, {**PREVIEW, "changes": [{"action": "explode"}]}, "member changes: member action"),
        (
            StackPreview.parse,
            {**PREVIEW, "changes": [{"action": "create", "object": "a"}]},
            "member changes: member paths",
        ),
        (StackPreview.parse, {"changes": []}, "member stack"),
        (StackPreview.parse, {**PREVIEW, "violations": [1]}, "member violations"),
    ],
)
def test_the_faulty_member_is_named(parse: Callable[[Any], object], document: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse(document)
