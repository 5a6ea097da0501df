"""What `reside replica describe` shows of an instance and of the Sentinel's report."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from reside.cli import describing, output
from reside.model.entities import LoadRequest
from reside.model.reports import ObjectReport, StackReport

ROW: dict[str, Any] = {
    "id": 3,
    "name": "greeter",
    "version": 2,
    "status": "degraded",
    "note": "CrashLoopBackOff: exit code 1",
    "image": "registry.reside.internal/reside/examples/greeter@sha256:" + "a" * 64,
}
OBJECTS = {
    "Service/greeter": ObjectReport("updated", state="current"),
    "Deployment/greeter-2": ObjectReport(
        "updated",
        state="in-progress",
        reason="CrashLoopBackOff: exit code 1",
        drift=("spec.paused by injector was added, and stays",),
        reverted=("kubectl-edit changed spec.replicas",),
    ),
    "Secret/greeter": ObjectReport("error", error="no value: \x1b[31mco_zx"),
    "Ingress/greeter": ObjectReport("requested"),
    "PersistentVolumeClaim/kubernetes-sentinel": ObjectReport("updated", state="terminating"),
}
REPORT = StackReport("b" * 64, None, OBJECTS, ("Deployment/greeter-2 follows no limits",))


def shown(monkeypatch: pytest.MonkeyPatch, report: StackReport | None, **more: Any) -> str:
    written = io.StringIO()
    console = Console(file=written, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(output, "console", console)
    monkeypatch.setattr(output, "errors", console)
    missing = [more["missing"]] if "missing" in more else []
    found = describing.Described(
        "greeter", more.get("row", ROW), report, more.get("requests", ()), more.get("grants", ()), missing
    )
    describing.show(found, more.get("format_", output.Output.table))
    return written.getvalue()


def test_each_object_has_its_state_and_reason_and_those_that_are_not_current_come_first() -> None:
    assert [(row["object"], row["state"], row["reason"]) for row in describing.object_rows(REPORT)] == [
        ("Deployment/greeter-2", "in-progress", "CrashLoopBackOff: exit code 1"),
        ("Ingress/greeter", "applying", None),
        ("PersistentVolumeClaim/kubernetes-sentinel", "terminating", None),
        ("Secret/greeter", "error", "no value: \x1b[31mco_zx"),
        ("Service/greeter", "current", None),
    ]


def test_the_list_of_objects_fits_eighty_columns_and_prints_texts_literally(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, REPORT).splitlines()
    table = lines[lines.index(next(line for line in lines if line.startswith("OBJECT"))) : lines.index("drift:")]
    assert all(len(line) <= 80 for line in table)
    assert lines[0] == "greeter (id 3) version 2 is degraded: CrashLoopBackOff: exit code 1"
    assert "stack  revision bbbbbbbbbbbb is applied" in lines
    assert "  Deployment/greeter-2: spec.paused by injector was added, and stays" in lines
    assert "  Deployment/greeter-2: kubectl-edit changed spec.replicas" in lines
    assert "  Deployment/greeter-2 follows no limits" in lines
    assert "\x1b[31mco_zx" not in "\n".join(lines)


def test_a_known_reason_has_its_cure_once_and_programs_get_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, REPORT).splitlines()
    (cure,) = lines[lines.index("what to do:") + 1 :]
    assert cure.startswith("  CrashLoopBackOff: read why in `reside replica logs NAME`")
    cures = json.loads(shown(monkeypatch, REPORT, format_=output.Output.json))["cures"]
    assert list(cures) == ["CrashLoopBackOff"]
    assert not list(describing.cures(describing.Described("greeter", {**ROW, "note": None}, StackReport())))


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (StackReport(None, "Deployment/x: exceeded quota"), "stack  not as declared: Deployment/x: exceeded quota"),
        (StackReport(), "stack  is being applied"),
    ],
)
def test_a_stack_that_is_not_applied_says_why(report: StackReport, line: str) -> None:
    assert line in list(describing.head(ROW, report))


def test_without_the_right_to_read_reports_the_replica_is_shown_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(monkeypatch, None, missing="co_z1 lacks deployment:read:all: `reside permission grant`")
    assert "greeter (id 3)" in found
    assert "warning: co_z1 lacks deployment:read:all" in found
    assert "OBJECT" not in found


WAITING = LoadRequest(id=7, status="requires-approval", image="registry.example.org/greeter:v3", owner="co_z")
FAILED = LoadRequest(id=6, status="invalid", image="x", owner="co_z", error_message="no replica implements greeting.v1")


def test_loads_and_permissions_that_it_waits_for_are_shown_with_their_cures(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = ["greet of greeter is not granted: caller has asked for it, and nobody has decided"]
    lines = shown(monkeypatch, None, requests=[WAITING, FAILED], grants=grants).splitlines()
    at = lines.index("loads and permissions:")
    assert lines[at + 1 : at + 4] == [
        "  load request 7 waits for approval: registry.example.org/greeter:v3",
        "  load request 6 is invalid: no replica implements greeting.v1",
        f"  {grants[0]}",
    ]
    found = json.loads(shown(monkeypatch, None, requests=[WAITING, FAILED], format_=output.Output.json))
    assert [(each["id"], each["status"]) for each in found["requests"]] == [(7, "requires-approval"), (6, "invalid")]
    assert list(found["cures"]) == ["CrashLoopBackOff", "waiting-for-approval", "waiting-for-requirement"]


def test_a_name_that_only_load_requests_have_is_described_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, None, row=None, requests=[WAITING]).splitlines()
    assert lines[0] == "greeter has no version yet"
    assert lines[-1].startswith("  waiting-for-approval: ")


def test_json_has_the_row_and_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(shown(monkeypatch, REPORT, format_=output.Output.json))
    assert found["name"] == "greeter"
    assert StackReport.parse(found["report"]) == StackReport(REPORT.revision, None, OBJECTS, REPORT.advice)
