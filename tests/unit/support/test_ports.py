"""Ports of tests are taken in turn by all processes, and skip those that are in use."""

from __future__ import annotations

import multiprocessing
import socket
from typing import TYPE_CHECKING

import pytest
from support import ports

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a turn of its own."""
    monkeypatch.setattr(ports, "_TURN", tmp_path / "turn")
    return tmp_path / "turn"


def _take(count: int) -> list[int]:
    return [ports.free_port() for _ in range(count)]


def test_processes_take_different_ports() -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        found = [port for taken in pool.map(_take, [20] * 8, chunksize=1) for port in taken]
    assert len(set(found)) == len(found) == 160
    assert all(ports.FIRST <= port <= ports.LAST for port in found)


def test_a_port_in_use_is_skipped_and_the_first_follows_the_last(turn: Path) -> None:
    (before,) = _take(1)
    turn.write_text(str(before))
    with socket.create_server(("127.0.0.1", ports.free_port())) as listening:
        turn.write_text(str(before))
        assert ports.free_port() > listening.getsockname()[1]
    turn.write_text(str(ports.LAST))
    assert ports.FIRST <= ports.free_port() < ports.LAST


@pytest.mark.parametrize("content", ["", "nonsense", "80", "99999"])
def test_what_else_is_in_the_file_begins_a_turn(turn: Path, content: str) -> None:
    turn.write_text(content)
    port = ports.free_port()
    assert ports.FIRST <= port <= ports.LAST
    assert turn.read_text() == str(port)
