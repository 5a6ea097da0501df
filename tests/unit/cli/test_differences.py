"""What an approval changes is shown side by side on a terminal of any width, and as lines elsewhere."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from reside.cli import differences
from reside.cli.replica import waits_for
from reside.model.entities import LoadRequest
from reside.model.previews import ObjectChange, ValueChange

IMAGE = f"registry.reside.internal/examples/greeter@sha256:{'0' * 64}"
TEMPLATE = {"image": IMAGE, "env": [{"name": "A", "value": "1"}]}
CHANGES = (
    ObjectChange(
        "Deployment/greeter-1",
        "update",
        ("spec.replicas", "spec.template"),
        "co generation 3",
        (
            ValueChange("spec.replicas", 1, 0),
            ValueChange("spec.template", TEMPLATE, TEMPLATE | {"env": [{"name": "A", "value": "2"}]}),
        ),
    ),
    ObjectChange("Secret/greeter", "update", ("data.key",), None, (ValueChange("data.key", "***", "***"),)),
    ObjectChange("Service/greeter", "create", (), None, (ValueChange("", None, {"spec": {"type": "ClusterIP"}}),)),
    ObjectChange("Job/large", "delete"),
)


def printed(width: int, *, terminal: bool, changes: tuple[ObjectChange, ...] = CHANGES) -> list[str]:
    """Return what is printed, without colours."""
    file = StringIO()
    differences.show(Console(file=file, width=width, force_terminal=terminal, color_system=None), changes)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_shows_both_sides_within_its_width(width: int) -> None:
    lines = printed(width, terminal=True)
    assert max(map(len, lines)) <= width
    assert "update Deployment/greeter-1 (live generation 3)" in " ".join(" ".join(lines).split())
    half = width // 2
    assert any(line[:half].rstrip() == "1" and line[half:].strip() == "0" for line in lines)
    text = "".join(line.strip() for line in lines)
    assert "0" * 64 in text or width < 200
    assert any("***" in line and "*** (changed)" in line for line in lines)
    assert any(not line[:half].strip() and "type: ClusterIP" in line for line in lines)


def test_a_pipe_gets_lines_that_are_not_folded() -> None:
    lines = printed(40, terminal=False)
    assert lines[:4] == ["update Deployment/greeter-1 (live generation 3)", "  spec.replicas", "    - 1", "    + 0"]
    assert f"      image: {IMAGE}" in lines
    assert lines[-2:] == ["delete Job/large", "      (not shown: too large, or previewed by an earlier release)"]
    at = lines.index("  data.key")
    assert lines[at + 1 : at + 3] == ["    - ***", "    + *** (changed)"]


def test_text_from_elsewhere_controls_no_terminal() -> None:
    hostile = ObjectChange("ConfigMap/a", "update", ("x",), None, (ValueChange("x\x1b[2J", "a\x1b[31m", "[red]b\x07"),))
    for terminal in (True, False):
        text = "\n".join(printed(80, terminal=terminal, changes=(hostile,)))
        assert "\x1b[2J" not in text
        assert "\x07" not in text
        assert "[red]b" in text


def test_a_request_without_changes_says_so_and_one_of_an_earlier_release_shows_its_paths() -> None:
    assert printed(80, terminal=True, changes=()) == ["nothing changes in Kubernetes"]
    old: dict[str, Any] = {"object": "Service/a", "action": "update", "paths": ["spec.ports", "spec.type"]}
    preview = {"changes": [old, {"object": "Service/b", "action": "same", "paths": []}]}
    request = LoadRequest(id=1, status="requires-approval", image="i", owner="co_z", preview=preview)
    changes = differences.changes_of(request)
    assert [change.object for change in changes] == ["Service/a"]
    assert "  spec.ports, spec.type" in printed(80, terminal=False, changes=changes)
    assert not waits_for("a", request)
