"""`reside dev` without a cluster: which instance a folder updates, what is shown, and what ends the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reside.build.source_state import SourceState, read_state
from reside.cli import dev
from reside.cli.developing import Times, spec_of, target
from reside.cli.main import run
from reside.cli.new import Kind, make, parse_names
from reside.model.entities import ApproveRequest, ChangedPermission, Difference, LoadRequest
from reside.model.errors import InvalidInput, ResideError

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = "ghcr.io/acme/hello"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a new replica, which is not exclusive."""
    make(tmp_path / "hello", Kind.replica, parse_names("hello", "ghcr.io/acme"))
    manifest = tmp_path / "hello/replica.yaml"
    manifest.write_text(manifest.read_text().replace("exclusive: true", "exclusive: false"))
    return tmp_path / "hello"


@pytest.fixture
def state(folder: Path) -> SourceState:
    """Return what the folder holds."""
    return read_state(folder, "dev")


def row(number: int, name: str, identity: str = IDENTITY) -> dict[str, Any]:
    return {"id": number, "name": name, "identity": identity}


def test_the_only_instance_is_updated_and_several_need_a_choice(state: SourceState) -> None:
    others = [row(3, "greeter", "ghcr.io/acme/greeter")]
    assert target(others, state, None) is None
    assert target([*others, row(4, "hello-1")], state, None) == row(4, "hello-1")
    both = [*others, row(4, "a"), row(5, "b")]
    with pytest.raises(InvalidInput, match=r"a, b are instances of .*: choose one with --name"):
        target(both, state, None)
    assert target(both, state, "b") == row(5, "b")
    assert target(both, state, "c") is None
    with pytest.raises(InvalidInput, match=r"greeter is an instance of ghcr\.io/acme/greeter"):
        target(both, state, "greeter")


def test_an_exclusive_replica_has_one_instance_whatever_its_name(folder: Path) -> None:
    manifest = folder / "replica.yaml"
    manifest.write_text(manifest.read_text().replace("exclusive: false", "exclusive: true"))
    assert target([row(4, "a")], read_state(folder, "dev"), "b") == row(4, "a")


def test_what_is_loaded_is_a_new_version_or_a_new_instance() -> None:
    assert spec_of("image", row(4, "a"), "a").document() | {"health": None} == {
        "image": "image",
        "replicaId": 4,
        "health": None,
    }
    assert spec_of("image", None, "c").name == "c"


def test_the_steps_of_a_change_add_up() -> None:
    times = Times()
    times.steps = {"build": 0.25, "start": 2.0}
    assert str(times) == "2.2 s (build 0.2 s, start 2.0 s)"
    times.done("approval")
    assert list(times.steps) == ["build", "start", "approval"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "is not a folder"), (".", "contains neither"), ("hello/hello.v1", "contains a contract")],
)
def test_a_folder_without_a_replica_ends_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    assert run(["dev", str(folder.parent / name)]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert "Go on" not in said.err


def request(*added: ChangedPermission) -> LoadRequest:
    content = ApproveRequest.model_validate(
        {
            "info": {"name": "hello", "class": "long-running", "exclusive": True, "scalable": True},
            "name": "hello",
            "identity": IDENTITY,
            "digest": "sha256:1",
            "displayInfo": {},
            "implementations": {},
            "requirements": {},
        }
    )
    content = content.model_copy(
        update={"difference": Difference(version=1, digest="sha256:0", added=added, removed=())}
    )
    return LoadRequest(
        id=7, status="requires-approval", image="image", owner="co_z", preview={"changes": []}, approve_request=content
    )


@pytest.mark.anyio
async def test_an_approval_without_a_question_still_shows_other_permissions(capsys: pytest.CaptureFixture[str]) -> None:
    await dev.decide(dev.Screen(), request(), approve=True)
    assert capsys.readouterr().out == ""
    await dev.decide(
        dev.Screen(), request(ChangedPermission(contract="c", replica="alpha", permission="read")), approve=True
    )
    assert "alpha" in capsys.readouterr().out


@pytest.mark.anyio
async def test_a_load_is_not_approved_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def no_answer(_question: str) -> None:
        return None

    monkeypatch.setattr(dev, "confirm", no_answer)
    with pytest.raises(ResideError, match="nothing was loaded"):
        await dev.decide(dev.Screen(), request(), approve=False)
    assert "load request 7" in capsys.readouterr().out
