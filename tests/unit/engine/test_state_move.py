"""A state moves to another backend, whatever ends the move in between. The backends are in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from reside.sentinel.engine import EngineBroken, EngineError, EngineKilled, EngineSettings, EngineUnavailable
from reside.sentinel.engine.runner import CommandResult
from reside.sentinel.engine.settings import PROJECT
from reside.sentinel.engine.stack_files import StackFiles, content_of, recorded_backend
from reside.sentinel.engine.state_move import StateMove, is_same, misplaced, shown

if TYPE_CHECKING:
    from pathlib import Path

S3, OTHER = "s3://states/cluster?region=x", "gs://elsewhere"
PASSPHRASE = {"type": "passphrase", "state": {"salt": "v1:aaaa:v1:bbbb:cccc"}}
STATE = {"version": 3, "deployment": {"secrets_providers": PASSPHRASE, "resources": [{"urn": "the state"}]}}


class States(dict[str, dict[str, Any]]):
    """States by the address of their backend; that of the volume is in a file below its address."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self.volume = f"file://{workspace}?metadata=skip"
        self._file = workspace / ".pulumi" / "stacks" / PROJECT / "demo.json"

    def read(self, address: str) -> dict[str, Any] | None:
        """Return the state of a backend."""
        if address != self.volume:
            return self.get(address)
        content = content_of(self._file)
        return None if content is None else json.loads(content)

    def write(self, address: str, state: dict[str, Any]) -> None:
        """Replace the state of a backend."""
        if address != self.volume:
            self[address] = state
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(state))

    def all(self) -> dict[str, dict[str, Any]]:
        """Return the states of all backends."""
        local = self.read(self.volume)
        return dict(self) if local is None else {**self, self.volume: local}


@dataclass
class Backends:
    """Runs the commands of a move.

    Attributes:
        states: the states.
        dies_after: number of commands after which the process dies.
        unreachable: the address of a backend that can't be reached.
        alias: an address that names the same store as another one.
    """

    states: States
    dies_after: int | None = None
    unreachable: str | None = None
    alias: dict[str, str] = field(default_factory=dict)

    def execute(self, arguments: list[str], folder: Path) -> CommandResult:
        """Run one command of the command line."""
        if self.dies_after is not None:
            if not self.dies_after:
                raise EngineKilled("died")
            self.dies_after -= 1
        address = str(recorded_backend(content_of(folder / "Pulumi.yaml")))
        address = self.alias.get(address, address)
        if address == self.unreachable:
            return CommandResult("", "operation error S3: connection refused", 255)
        return self._run(arguments, address, folder)

    def _run(self, arguments: list[str], address: str, folder: Path) -> CommandResult:
        here = self.states.read(address)
        command = " ".join(arguments[:2])
        if command == "stack init":
            assert here is None, "the command line refuses to create it twice"
            self.states.write(address, {"version": 3, "deployment": {}})
        elif here is None:
            return CommandResult("", "error: no stack named 'demo' found", 255)
        elif command == "stack export":
            return CommandResult(json.dumps(here), "", 0)
        elif command == "stack import":
            self.states.write(address, json.loads((folder / "imported.json").read_text()))
        elif command == "stack rm":
            del self.states[address]
        elif command == "stack change-secrets-provider":
            provider = {"type": "cloud", "state": {"url": arguments[2], "encryptedkey": "k="}}
            deployment = {**here["deployment"], "secrets_providers": provider}
            self.states.write(address, {**here, "deployment": deployment})
        else:
            assert arguments[0] == "cancel"
        return CommandResult("", "", 0)


@dataclass
class World:
    """One stack, its workspace and the backends."""

    settings: EngineSettings
    backends: Backends

    def at(self, backend: str | None, **more: Any) -> World:
        """Return the world as a Sentinel with another setting finds it."""
        return World(replace(self.settings, backend=backend, **more), self.backends)

    def move(self) -> None:
        """Move the state as each operation does at its beginning."""
        StateMove(self.settings, "demo", self.backends.execute).run()

    def places(self) -> list[str]:
        """Return the backends that have a state."""
        return sorted(shown(address) for address in self.backends.states.all())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a stack whose state is in S3."""
    settings = EngineSettings(tmp_path, "p", "ns", backend=S3)
    found = World(settings, Backends(States(settings.workspace("demo"))))
    for name in ("repair", "sync_new", "sync"):
        monkeypatch.setattr(StackFiles, name, lambda _: None)
    StackFiles(settings, "demo").prepare()
    found.backends.states.write(found.backends.states.volume, STATE)
    found.move()
    return found


def test_a_state_moves_once_and_stays_in_one_place(world: World) -> None:
    assert world.places() == ["s3://states/cluster/demo"]
    assert misplaced(world.settings) == {}
    world.backends.dies_after = 0
    world.move()  # runs no command


@pytest.mark.parametrize("target", [OTHER, None], ids=["another store", "the volume"])
def test_a_move_that_dies_at_any_command_is_completed_by_the_next_one(world: World, target: str | None) -> None:
    for commands in count():
        moved = world.at(target)
        world.backends.dies_after = commands
        try:
            moved.move()
        except EngineKilled:
            world.backends.dies_after = None
            assert STATE in world.backends.states.all().values() or _noted(world) == STATE
            assert misplaced(moved.settings) == {"demo": "s3://states/cluster/demo"}
            moved.move()
        else:
            break
        finally:
            world.backends.dies_after = None
        assert list(world.backends.states.all().values()) == [STATE]
        assert misplaced(moved.settings) == {}
        world.move()
    assert commands >= 4


def test_the_setting_may_change_again_in_the_middle_of_a_move(world: World) -> None:
    for commands in range(8):
        for backend in (OTHER, None, S3, None, OTHER):
            world.backends.dies_after = commands
            try:
                world.at(backend).move()
            except EngineKilled:
                assert STATE in world.backends.states.all().values() or _noted(world) == STATE
            world.backends.dies_after = None
        world.move()
        assert world.backends.states.all() == {"s3://states/cluster/demo?region=x": STATE}


def _noted(world: World) -> dict[str, Any] | None:
    content = content_of(world.settings.workspace("demo") / ".moving.json")
    return None if content is None else json.loads(content)["state"]


def test_another_key_encrypts_the_state_anew(world: World) -> None:
    key = "awskms://alias/reside?region=x"
    world.at(OTHER, secrets_provider=key).move()
    (state,) = world.backends.states.all().values()
    assert state["deployment"]["secrets_providers"]["state"]["url"] == key


def test_a_store_that_can_not_be_reached_is_an_error_with_its_cure_and_can_be_given_up(world: World) -> None:
    world.backends.unreachable = "s3://states/cluster/demo?region=x"
    moved = world.at(OTHER)
    with pytest.raises(EngineUnavailable, match=r"s3://states/cluster/demo and can't be read.*--abandon"):
        moved.move()
    assert misplaced(moved.settings) == {"demo": "s3://states/cluster/demo"}
    world.backends.states[f"{OTHER}/demo"] = {"version": 3, "deployment": {"resources": ["older"]}}
    StateMove(moved.settings, "demo", world.backends.execute).give_up()
    assert misplaced(moved.settings) == {}
    assert world.places() == ["s3://states/cluster/demo"]  # which nobody reads; an older state is not found, either


def test_only_a_state_that_is_elsewhere_is_given_up(world: World) -> None:
    StateMove(world.settings, "demo", world.backends.execute).give_up()
    assert list(world.backends.states.all().values()) == [STATE]


def test_a_move_that_has_begun_keeps_its_state_if_the_first_place_is_given_up(world: World) -> None:
    moved = world.at(OTHER)
    world.backends.dies_after = 1
    with pytest.raises(EngineKilled):
        moved.move()
    world.backends.dies_after = None
    world.backends.unreachable = "s3://states/cluster/demo?region=x"
    with pytest.raises(EngineError):
        moved.move()
    StateMove(moved.settings, "demo", world.backends.execute).give_up()
    assert world.backends.states[f"{OTHER}/demo"] == STATE
    assert misplaced(moved.settings) == {}


def test_two_addresses_of_one_store_lose_nothing(world: World) -> None:
    there, here = "s3://states/cluster/demo?region=x", "s3://alias/demo"
    world.backends.alias[here] = there
    world.at("s3://alias").move()
    assert world.backends.states.all() == {there: STATE}


def test_a_damaged_note_is_an_error_and_not_a_guess(world: World) -> None:
    note = world.settings.workspace("demo") / ".moving.json"
    note.write_text("{")
    with pytest.raises(EngineBroken, match="is damaged: remove it"):
        world.move()


def test_the_same_store_is_recognized_however_it_is_reached() -> None:
    assert is_same("s3://a/b/demo?region=x", "s3://a/b/demo/?region=y&awssdk=v2")
    assert is_same("file:///a?metadata=skip", "file:///b")
    assert not is_same("s3://a/b/demo", "s3://a/c/demo")
    assert not is_same("s3://a/b?endpoint=http://one", "s3://a/b?endpoint=http://two")
    assert not is_same("azblob://a/b?storage_account=one", "azblob://a/b?storage_account=two")
    assert not is_same("azblob://a/b?domain=one.example", "azblob://a/b?domain=two.example")
