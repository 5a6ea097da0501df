"""Progress: plain lines when something changes, and a live line with the time on a terminal."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

from reside.cli import output
from reside.cli.progress import Progress, Steps, print_result


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> StringIO:
    written = StringIO()
    console = Console(file=written, force_terminal=request.param, width=80, color_system=None)
    monkeypatch.setattr(output, "errors", console)
    return written


@pytest.mark.parametrize("screen", [False], indirect=True)
def test_a_line_is_printed_once_for_each_change(screen: StringIO) -> None:
    with Steps("load") as steps:
        for line in ("request 5: validating", "request 5: validating", "request 5: requires-approval"):
            steps.report(line, "")
        steps.report("Storage", "started")
        steps.report("Storage", "done")
        steps.report("Load", "unchanged")
    assert screen.getvalue().splitlines() == [
        "load: request 5: validating",
        "load: request 5: requires-approval",
        "load: Storage started",
        f"load: Storage done ({steps.seconds['Storage']:.1f} s)",
    ]


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_a_terminal_shows_what_the_command_waits_for_and_for_how_long(
    screen: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("reside.cli.progress.time.monotonic", lambda: clock[0])
    with Steps("bootstrap") as steps:
        steps.report("Storage", "started")
        steps.report("Storage", "started")
        clock[0] += 7
    assert "bootstrap: Storage (7 s)" in screen.getvalue()


def test_events_are_json_objects_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("reside.cli.progress.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(output, "console", Console(width=40))
    with Steps("load", Progress.json) as steps:
        steps.report("Storage", "started")
        clock[0] += 2.5
        steps.report("Storage", "done")
        steps.report("Load", "unchanged")
        for _ in range(2):
            steps.report("request 5: \x1b[31mvalidating, which a narrow terminal would fold", "")
    print_result(Progress.json, "for people", name="é")
    said = capsys.readouterr()
    assert [json.loads(line) for line in said.out.splitlines()] == [
        {"event": "started", "step": "Storage"},
        {"event": "done", "step": "Storage", "seconds": 2.5},
        {"event": "unchanged", "step": "Load"},
        {"event": "message", "text": "request 5: \\x1b[31mvalidating, which a narrow terminal would fold"},
        {"event": "result", "name": "é"},
    ]
    assert said.err == ""
