"""What `reside replica history` lists."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.console import Console

from reside.cli import listing, output
from reside.cli.grantees import Names
from reside.cli.history import COLUMNS, rows
from reside.cli.requests import People

if TYPE_CHECKING:
    import pytest


def version(number: int, **more: Any) -> dict[str, Any]:
    found = {"id": number, "status": "stopped", "since": 1_000, "digest": "sha256:" + str(number) * 64}
    found |= {"request": number + 10, "reason": None, "wasHealthy": True, "canaryPercent": None, "rolledBackTo": None}
    return found | more


ROW = {
    "name": "greeter",
    "identity": "registry.example.org/greeter",
    "version": 3,
    "versions": [
        version(1, request=None),
        version(2, rolledBackTo=1, reason="CrashLoopBackOff: exit code 1"),
        version(3, status="running"),
        version(4, canaryPercent=25, rolledBackTo=3),
        version(5, canaryPercent=25, status="running"),
    ],
}
NAMES = Names([], {"ada": "co_zAda"})


def test_the_newest_version_comes_first_with_who_loaded_and_approved_it_and_how_it_ended() -> None:
    found = rows(ROW, {12: People("co_zAda", "co_zStranger"), 13: People("co_zStranger", "co_zAda")}, NAMES)
    assert [(each["id"], each["current"], each["by"], each["approvedBy"], each["reason"]) for each in found] == [
        (5, False, None, None, "25 % canary"),
        (4, False, None, None, "aborted, version 3 stays"),
        (3, True, "co_zStranger", "ada", None),
        (2, False, "ada", "co_zStranger", "rolled back, version 1 stays: CrashLoopBackOff: exit code 1"),
        (1, False, None, None, None),
    ]
    assert found[2]["image"] == "registry.example.org/greeter@sha256:" + "3" * 64


def test_the_list_fits_eighty_columns_and_marks_the_current_version(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    console = Console(file=written, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(output, "console", console)
    account = "co_z" + "A" * 40
    listing.show(rows(ROW, {13: People(account, account)}, NAMES), COLUMNS, listing.ListOptions(), "id")
    lines = written.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    (marked,) = [line.split() for line in lines if "*" in line]
    assert marked[:3] == ["3", "*", "running"]
    assert marked[-3:] == ["3" * 12, "co_zAAAAAAA…", "co_zAAAAAAA…"]
