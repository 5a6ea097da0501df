"""Text of others is printed literally: neither markup nor terminal commands in it have an effect."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from reside.cli import listing, output
from reside.cli.progress import Steps
from reside.cli.rendered_request import render_request
from reside.model.entities import (
    ApproveRequest,
    ChangedPermission,
    Difference,
    GrantedPermission,
    LoadRequest,
    Requirement,
)

HOSTILE = "[/] [red]all[/red] [link=x] \x1b[2J\u202e\n"
SHOWN = r"[/] [red]all[/red] [link=x] \x1b[2J\u202e"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=300, color_system=None)
    monkeypatch.setattr(output, "errors", console)
    monkeypatch.setattr(output, "console", console)
    return written


def test_a_permission_can_not_hide_its_name_from_the_approver(screen: StringIO) -> None:
    permission = GrantedPermission(permission="greet", instance_id=HOSTILE, params={"to": "\x1b[2J[red]"})
    content = ApproveRequest(
        info={"name": "caller", "class": "oneshot", "exclusive": False, "scalable": False},
        name="caller",
        identity="registry.example.org/caller",
        digest="sha256:1",
        requirements={"greeting": Requirement(contract="registry.example.org/greeting", permissions=(permission,))},
        difference=Difference(
            version=1,
            digest="sha256:0",
            added=(ChangedPermission(contract="x", replica=HOSTILE, permission="greet"),),
            removed=(ChangedPermission(contract="x", replica="greeter", permission="wave"),),
        ),
    )
    request = LoadRequest(id=1, status="requires-approval", image="image", owner="co_z", approve_request=content)
    output.console.print(render_request(request))
    assert f"greet for {SHOWN}" in screen.getvalue()
    lines = [line.split() for line in screen.getvalue().splitlines()]
    assert ["new", "greet", *f"{SHOWN}\\n (x)".split()] in lines
    assert ["gone", "wave", "greeter", "(x)"] in lines
    assert ["owner", "co_z"] in lines, "the owner may disable and delete the replica"
    assert r"""with {"to": "\u001b[2J[red]"}""" in screen.getvalue()


def test_an_error_is_one_line_as_it_was_written(screen: StringIO) -> None:
    output.fail(HOSTILE)
    assert screen.getvalue() == f"error: {SHOWN}\n"


def test_a_remark_is_shown_as_it_was_written(screen: StringIO) -> None:
    with Steps("load") as steps:
        steps.report(HOSTILE, "")
    assert f"load: {SHOWN}" in screen.getvalue()


def test_what_programs_get_has_no_control_sequences(screen: StringIO) -> None:
    hostile = {"note": "\x9b2J\x7f\u202e"}
    output.record(hostile, output.Output.json)
    output.record(hostile, output.Output.yaml)
    for format_ in listing.Format:
        listing.show([hostile], [listing.Column("note")], listing.ListOptions(format_), name="note")
    assert screen.getvalue().isascii()
    assert "\x7f" not in screen.getvalue()
