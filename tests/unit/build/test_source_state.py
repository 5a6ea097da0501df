"""What a replica's folder holds at one moment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from reside.build.source_state import read_state
from reside.cli.new import Kind, make, parse_names
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a new replica with a contract of its own."""
    make(tmp_path / "hello", Kind.replica, parse_names("hello", "ghcr.io/acme"))
    return tmp_path / "hello"


def test_a_new_replica_brings_its_contract(folder: Path) -> None:
    state = read_state(folder, "dev")
    assert str(state.source.reference) == "ghcr.io/acme/hello:dev"
    assert [str(each.reference) for each in state.contracts] == ["ghcr.io/acme/hello.v1:latest"]


def test_a_contract_that_the_replica_does_not_implement_is_not_its_own(folder: Path) -> None:
    other = folder / "other.v1"
    other.mkdir()
    text = (folder / "hello.v1/contract.yaml").read_text()
    (other / "contract.yaml").write_text(text.replace("acme/hello.v1", "acme/other.v1"))
    assert [each.folder.name for each in read_state(folder, "dev").contracts] == ["hello.v1"]


def test_what_the_image_is_built_from_decides_whether_the_folder_has_changed(folder: Path) -> None:
    digests = [read_state(folder, "dev").digest]
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/main.pyc").write_bytes(b"x")
    (folder / "test_more.py").write_text("x = 1\n")  # its .dockerignore leaves tests out
    assert read_state(folder, "dev").digest == digests[0]
    for change in (
        lambda: (folder / "main.py").write_text("x = 1\n"),
        lambda: (folder / "data.txt").write_text("x"),
        lambda: (folder / "data.txt").rename(folder / "other.txt"),
        lambda: (folder / "other.txt").chmod(0o755),
        lambda: _replace(folder / "replica.yaml", "Greets", "Greets all"),
        lambda: _replace(folder / "hello.v1/contract.yaml", "Greets", "Greets all"),
        lambda: (folder / "Dockerfile").write_text("FROM scratch\n"),
        lambda: (folder / "Dockerfile").write_text("FROM other\n"),
    ):
        change()
        digests.append(read_state(folder, "dev").digest)
    assert len(set(digests)) == len(digests)


def test_of_a_replica_in_typescript_its_packages_count_as_they_are_locked(folder: Path) -> None:
    (folder / "main.py").rename(folder / "main.ts")
    digests = [read_state(folder, "dev").digest]
    (folder / "node_modules/zod").mkdir(parents=True)
    (folder / "node_modules/zod/index.js").write_text("x")
    assert read_state(folder, "dev").digest == digests[0]
    for name in ("greet.ts", "package.json", "package-lock.json", "tsconfig.json"):
        (folder / name).write_text("{}")
        digests.append(read_state(folder, "dev").digest)
    assert len(set(digests)) == len(digests)
    (folder / "main.py").write_text("x = 1\n")
    with pytest.raises(InvalidInput, match=r"has both main\.py and main\.ts"):
        read_state(folder, "dev")


def _replace(path: Path, before: str, after: str) -> None:
    path.write_text(path.read_text().replace(before, after))


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("main.py", "def f(:\n", r"main.py:1 is not Python: "),
        ("main.py", "x = 1\n\0", r"main.py.* is not Python: "),
        ("replica.yaml", "identity: [", r"replica.yaml is not YAML"),
        ("hello.v1/contract.yaml", "identity: 1\n", r"hello.v1/contract.yaml: "),
    ],
)
def test_what_can_not_be_built_is_named(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_state(folder, "dev")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (".dockerignore", b"\xff", r"\.dockerignore is not UTF-8"),
        ("main.py", b"x = " + b"-" * 100_000 + b"1", r"main.py is not Python: it is nested too deeply"),
        ("replica.yaml", b"a: " + b"[" * 3000, r"replica.yaml is not YAML: it is nested too deeply"),
        (b"caf\xe9.txt", b"x", r"caf.*\.txt is not UTF-8: rename it, or add it to \.dockerignore"),
    ],
    ids=["ignored files", "Python", "manifest", "name"],
)
def test_a_file_that_is_no_text_or_has_no_end_is_named(
    folder: Path, file: str | bytes, content: bytes, message: str
) -> None:
    """`reside dev` shows it and waits for the next change; an unexpected error would end it."""
    (folder / os.fsdecode(file)).write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        read_state(folder, "dev")


def test_a_contract_is_no_replica(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="contains a contract"):
        read_state(folder / "hello.v1", "dev")
