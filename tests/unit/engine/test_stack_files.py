"""The files of a stack: what is damaged is replaced, and what an operation relies on is on the disk."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.sentinel import config_map
from unit.engine.stack_states import SALT, state

from reside.sentinel.engine import EngineError, EngineKilled, EngineSettings, StackSpec, stack_files
from reside.sentinel.engine.runner import CommandResult
from reside.sentinel.engine.saved_state import settings_with
from reside.sentinel.engine.stack_files import DAMAGED_STATES, StackFiles
from reside.sentinel.engine.stack_operations import Apply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.sentinel.engine.runner import Program

DAMAGE = {"empty": b"", "cut off": state("a")[:99], "zeros": bytes(300), "other": b"\x93NUMPY", "text": b"{}"}


@pytest.fixture
def settings(tmp_path: Path) -> EngineSettings:
    return EngineSettings(tmp_path / "engine", "a passphrase", "ns")


@pytest.fixture
def files(settings: EngineSettings) -> StackFiles:
    found = StackFiles(settings, "demo")
    found.prepare()
    found._state_file.parent.mkdir(parents=True)
    return found


def replaced(replacement: str) -> float:
    return float(DAMAGED_STATES.labels(replacement)._value.get())


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_replaced_by_the_one_before_and_refreshed(files: StackFiles, damage: bytes) -> None:
    count = replaced("backup")
    files._state_file.write_bytes(damage)
    files._before.write_bytes(state("a"))
    files.repair()
    assert files._state_file.read_bytes() == state("a")
    assert files.interrupted
    assert replaced("backup") == count + 1
    files.repair()
    assert replaced("backup") == count + 1


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("before", [None, b"", state("a")[:50]])
def test_without_a_state_before_it_the_stack_is_new(files: StackFiles, damage: bytes, before: bytes | None) -> None:
    count = replaced("adoption")
    files._state_file.write_bytes(damage)
    if before is not None:
        files._before.write_bytes(before)
    files.repair()
    assert not files.exists
    assert not files._before.exists()
    assert replaced("adoption") == count + 1


def test_the_synced_state_takes_the_place_of_two_that_a_power_loss_has_damaged(files: StackFiles) -> None:
    """The engine replaces the other two by files that it does not sync."""
    files._state_file.write_bytes(state("a"))
    files.sync()
    files.sync()
    for file in (files._before, files._state_file):
        draft = file.with_suffix(".tmp")
        draft.write_bytes(b"")
        draft.replace(file)
    files.repair()
    assert files._state_file.read_bytes() == state("a")
    assert files.interrupted
    assert {path.name for path in files._state_file.parent.iterdir()} == {
        "demo.json", "demo.json.bak", "demo.json.synced"
    }  # fmt: skip


@pytest.mark.parametrize("damage", [*DAMAGE.values(), b"version: 1", None])
def test_the_file_with_the_layout_of_the_backend_is_restored(files: StackFiles, damage: bytes | None) -> None:
    files._state_file.write_bytes(state("a"))
    if damage is not None:
        files._store.write_bytes(damage)
    files.repair()
    assert files._store.read_bytes() == b"version: 1\n"


def test_a_state_that_is_gone_is_replaced_by_the_one_before(files: StackFiles) -> None:
    files._before.write_bytes(state("a"))
    files.repair()
    assert files.exists


def test_a_good_state_and_a_new_stack_are_left_alone(files: StackFiles) -> None:
    files.repair()
    assert not files.exists
    files._state_file.write_bytes(state("a"))
    files._config.write_text(settings_with(SALT))
    files._before.write_bytes(b"damaged")
    files.repair()
    assert files._state_file.read_bytes() == state("a")
    assert not files.interrupted


@pytest.mark.parametrize("damage", [None, b"", b"encryptionsal", b"\xff\0\0"])
def test_damaged_settings_are_made_again_from_the_state(files: StackFiles, damage: bytes | None) -> None:
    files._state_file.write_bytes(state("a"))
    if damage is not None:
        files._config.write_bytes(damage)
    files.repair()
    assert files._config.read_text() == settings_with(SALT)
    assert files.exists


def test_a_damaged_shared_salt_is_not_given_to_new_stacks(files: StackFiles) -> None:
    files._salt.write_bytes(b"\0\0\0")
    with files.shared_salt():
        assert not files._config.exists()
        files._config.write_text(settings_with(SALT))
    assert files._salt.read_text() == settings_with(SALT)


def test_stacks_that_are_created_at_once_share_one_salt(settings: EngineSettings) -> None:
    """Each further salt costs every resident engine the derivation of a key."""
    made = [StackFiles(settings, name) for name in ("a", "b", "c", "d")]
    inside = threading.Barrier(len(made))

    def create(files: StackFiles) -> None:
        files.prepare()
        with files.shared_salt():
            if not files._config.exists():
                with suppress(threading.BrokenBarrierError):
                    inside.wait(0.3)  # until all are here, unless they take turns
                files._config.write_text(settings_with(f"v1:{files.workspace.name}:v1:bbbb:cccc"))

    with ThreadPoolExecutor(len(made)) as threads:
        list(threads.map(create, made))
    assert len({files._config.read_text() for files in made}) == 1


def test_a_stack_does_not_wait_for_ever_for_the_first_salt(
    settings: EngineSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_files, "_FIRST_S", 0.0)
    first, other = StackFiles(settings, "first"), StackFiles(settings, "other")
    for files in (first, other):
        files.prepare()
    with first.shared_salt():
        with other.shared_salt():
            other._config.write_text(settings_with(SALT))
        first._config.write_text(settings_with(SALT.replace("a", "z")))
    assert first._salt.read_text() == settings_with(SALT)


class EngineOnFiles:
    """Stands for the engine: it creates and writes the state as the file backend does, and syncs nothing."""

    def __init__(self, files: StackFiles, *, code: int = 0, pending: tuple[str, ...] = ()) -> None:
        self.files = files
        self.code = code
        self.pending = pending
        self.ran: list[str] = []

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> EngineOnFiles:
        """Run a command."""
        self.ran.append(arguments[0])
        state_file = self.files._state_file
        if arguments[:2] == ["stack", "init"]:
            state_file.parent.mkdir(parents=True, exist_ok=True)
            self.files._config.write_text(settings_with(SALT))
        if state_file.exists():
            self.files._before.write_bytes(state_file.read_bytes())
        draft = state_file.with_suffix(".tmp")
        draft.write_bytes(state("a", pending=self.pending))
        draft.replace(state_file)
        return self

    def wait(self) -> CommandResult:
        """Return the result."""
        return CommandResult("{}", "", 0 if self.ran[-1] == "stack" else self.code)

    def stop(self) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return what was synced so far: the name and the inode of each file and folder."""
    found: list[tuple[str, int]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        found.append((path.name, path.stat().st_ino))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_the_mark_is_on_the_disk_before_the_command_and_the_state_before_the_mark_is_removed(
    settings: EngineSettings, synced: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = StackFiles(settings, "demo")
    engine = EngineOnFiles(files)
    at_start: list[str] = []
    at_end: list[tuple[str, int]] = []
    start, ended = engine.start, StackFiles.mark_ended

    def starts(arguments: Sequence[str], cwd: Path, program: Program | None = None) -> EngineOnFiles:
        if arguments[0] == "up":
            assert files.interrupted
            at_start.append(synced[-1][0])
        return start(arguments, cwd, program)

    def ends(files: StackFiles) -> None:
        at_end.extend(synced)
        ended(files)

    monkeypatch.setattr(engine, "start", starts)
    monkeypatch.setattr(StackFiles, "mark_ended", ends)
    Apply(settings, engine, StackSpec("demo", (config_map("a"),))).run()
    assert at_start == ["demo"]  # the name of the mark, in the folder of the stack
    names = [name for name, _ in at_end]
    assert ("demo.json", files._state_file.stat().st_ino) in at_end  # not an earlier file of the name
    assert {"Pulumi.demo.yaml", "reside", "stacks", ".pulumi", "demo", "workspaces", "engine"} <= set(names)
    assert names.index("demo.json") < names.index("reside")
    assert not files.interrupted


def test_a_killed_command_leaves_the_mark(settings: EngineSettings) -> None:
    files = StackFiles(settings, "demo")
    with pytest.raises(EngineKilled):
        Apply(settings, EngineOnFiles(files, code=-9), StackSpec("demo", (config_map("a"),))).run()
    assert files.interrupted


def test_a_failed_command_leaves_the_mark_as_long_as_operations_are_pending(settings: EngineSettings) -> None:
    """An engine that is terminated has an exit code as of a failure, and does not store what its last steps did."""
    files, apply = StackFiles(settings, "demo"), StackSpec("demo", (config_map("a"),))
    with pytest.raises(EngineError):
        Apply(settings, EngineOnFiles(files, code=255, pending=("b",)), apply).run()
    assert files.interrupted
    with pytest.raises(EngineError):
        Apply(settings, EngineOnFiles(files, code=255), apply).run()
    assert files.interrupted, "nothing tells that the state was refreshed"
    Apply(settings, EngineOnFiles(files), apply).run()
    assert not files.interrupted


@pytest.mark.parametrize(("pending", "interrupted"), [((), False), (("b",), True)])
def test_pending_operations_without_a_mark_are_those_of_an_interrupted_operation(
    files: StackFiles, pending: tuple[str, ...], *, interrupted: bool
) -> None:
    """An earlier release removed the mark of an engine that was terminated."""
    files._state_file.write_bytes(state("a", pending=pending))
    files.repair()
    assert files.interrupted == interrupted
