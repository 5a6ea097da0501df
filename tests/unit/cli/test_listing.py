"""Lists fit 80 columns, are complete with `--wide`, and are JSON, YAML or names for programs."""

from __future__ import annotations

import json
import time
from io import StringIO
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.console import Console

from reside.cli import listing, main, output, permissions, replicas, requests, secrets, users
from reside.cli.listing import Column, Format, ListOptions

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = "sha256:3f2c1a9b0d41" + "0" * 52
REPLICA = {
    "id": 112,
    "name": "a-replica-of-mine",
    "version": 37,
    "status": "starting",
    "since": int(time.time() * 1000) - 90_000,
    "digest": DIGEST,
    "image": f"registry.reside.internal/reside/examples/greeter@{DIGEST}",
    "note": "pod greeter-37-abc: the image can't be pulled (ImagePullBackOff): the registry does not have it",
}


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, **options: object) -> str:
    monkeypatch.setattr(output, "console", Console(width=width))
    listing.show([REPLICA], replicas.COLUMNS, ListOptions(**options))  # type: ignore[arg-type] # named by each test
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [200, 80, 60, 40, 20])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_cut_off(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(capsys, monkeypatch, width)
    assert max(map(len, text.splitlines())) <= width
    folded = "".join(text.split())
    assert all(letter in folded for letter in "ImagePullBackOff")
    if width >= 80:
        assert "a-replica-of-mine" in text
        assert " 3f2c1a9b0d41 " in text
        assert "ImagePullBackOff" in text


def test_wide_shows_the_whole_image(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert REPLICA["image"] in printed(capsys, monkeypatch, 300, wide=True)


def test_programs_get_all_members(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(printed(capsys, monkeypatch, 80, format_=Format.json)) == [REPLICA]
    assert yaml.safe_load(printed(capsys, monkeypatch, 80, format_=Format.yaml)) == [REPLICA]
    assert printed(capsys, monkeypatch, 20, format_=Format.name) == "a-replica-of-mine\n"


def test_an_empty_list_says_what_to_do_and_programs_get_an_empty_one(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column("name"),)
    listing.show([], columns, ListOptions(), empty="no account: create one")
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "no account: create one\n")
    listing.show([], columns, ListOptions(format_=Format.json), empty="no account: create one")
    assert capsys.readouterr().out == "[]\n"
    listing.show([], columns, ListOptions(format_=Format.name), empty="no account: create one")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86_399, "23h"), (864_000, "10d")],
)
def test_an_age_has_one_unit(seconds: int, text: str) -> None:
    assert listing.age(1_000_000, 1_000_000 + seconds * 1000) == text


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (f"ghcr.io/acme/greeter@{DIGEST}", "greeter@3f2c1a9b0d41"),
        (f"ghcr.io:5000/greeter@{DIGEST}", "greeter@3f2c1a9b0d41"),
        ("ghcr.io/acme/greeter:v2", "greeter:v2"),
        ("greeter", "greeter"),
    ],
)
def test_a_short_image_has_its_last_part_and_a_short_digest(image: str, text: str) -> None:
    assert listing.short_image(image) == text


@pytest.mark.parametrize(
    "columns", [replicas.COLUMNS, requests.COLUMNS, permissions.COLUMNS, secrets.COLUMNS, users.USER_COLUMNS]
)
def test_the_header_of_each_list_fits_half_a_terminal(columns: tuple[Column, ...]) -> None:
    shown = [column.header or column.name for column in columns if not column.wide]
    assert sum(map(len, shown)) + 2 * len(shown) <= 50


@pytest.mark.parametrize("status", ["running", "error"])
def test_a_status_has_a_colour_on_a_terminal_and_none_elsewhere(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (True, False):
        written = StringIO()
        color_system = "standard" if terminal else None
        monkeypatch.setattr(output, "console", Console(file=written, width=80, color_system=color_system))
        listing.show([{**REPLICA, "status": status}], replicas.COLUMNS, ListOptions())
        assert (f"m{status}" in written.getvalue()) is terminal


def test_lists_of_this_machine_are_wide_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account, alpha = f"co_z{'A' * 43}", f"co_z{'B' * 43}"
    document = {
        "clusters": [{"name": "east", "namespace": "reside", "alphaReplicaId": alpha}],
        "contexts": [{"name": "east", "cluster": "east", "account": "ada"}],
        "accounts": [{"name": "ada", "accountId": account, "encryptedAgentSecret": "x"}],
        "currentContext": "east",
    }
    (tmp_path / "config.yaml").write_text(json.dumps(document))
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr(output, "console", Console(width=80))
    assert main.run(["account", "list", "--wide"]) == 0
    assert account in capsys.readouterr().out
    assert main.run(["cluster", "list"]) == 0
    assert "CLUSTER" not in capsys.readouterr().out
    assert main.run(["cluster", "list", "--wide"]) == 0
    assert "CLUSTER" in capsys.readouterr().out
    assert main.run(["explain", "--wide"]) == 0
    assert "CURE" in capsys.readouterr().out
