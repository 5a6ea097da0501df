"""`reside new` refuses what it can't make, with the cure; an integration test builds and tests what it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.build.language import Language
from reside.cli import main
from reside.cli.new import Kind, Names, make, next_steps, parse_names

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "expected"),
    [("quoter", ("quoter", "quoter.v1")), ("quotes.v3", ("quotes", "quotes.v3")), ("v2", ("v2", "v2.v1"))],
)
def test_the_version_at_the_end_of_a_name_is_that_of_the_contract(name: str, expected: tuple[str, str]) -> None:
    names = parse_names(name, "ghcr.io/acme")
    assert (names.name, names.contract) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--name", "Quoter"], "name 'Quoter' is invalid: use at most 40 lower-case letters"),
        (["--name", "quoter.v0"], "name 'quoter.v0' is invalid"),
        (["--name", "jazz"], "name 'jazz' is reserved for the platform: choose another one; --name gives"),
        (["--registry", "https://ghcr.io"], "registry 'https://ghcr.io' is invalid: use a host and a path"),
    ],
)
def test_a_wrong_name_is_refused_and_makes_nothing(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["new", str(tmp_path / "quoter"), *options]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_a_folder_with_something_in_it_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").write_text("mine")
    assert main.run(["new", str(tmp_path), "--name", "quoter"]) == 1
    assert "is not empty: name a folder that does not exist yet" in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    assert main.run(["new", str(tmp_path / "notes")]) == 1
    assert "is a file" in capsys.readouterr().err


def test_an_empty_folder_is_filled_and_the_next_steps_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["new", str(tmp_path), "--name", "quoter", "--kind", "contract"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["contract.yaml", "test_contract.py"]
    assert f"reside build {tmp_path} --push" in capsys.readouterr().out


def test_the_steps_quote_a_path_with_spaces(tmp_path: Path) -> None:
    names = Names("quoter", "quoter.v1", "ghcr.io/acme")
    folder = tmp_path / "my replica"
    assert "quoter.v1/contract.yaml" in make(folder, Kind.replica, names)
    steps = dict(next_steps(folder, Kind.replica, names))
    assert steps["test"] == f"cd '{folder}' && python -m pytest"
    assert steps["build"].startswith(f"reside build '{folder}/quoter.v1' --push && reside build '{folder}' --push")
    assert steps["load"] == "reside replica load ghcr.io/acme/quoter:latest"


def test_a_contract_has_no_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "quotes.v1"
    assert main.run(["new", str(folder), "--kind", "contract", "--lang", "ts"]) == 1
    assert "a contract is the same in all languages: leave out --lang" in " ".join(capsys.readouterr().err.split())
    assert not folder.exists()


def test_a_replica_in_typescript_is_not_begun_without_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main.run(["new", str(tmp_path / "quoter"), "--lang", "ts"]) == 1
    assert "node was not found: install Node.js" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_the_test_of_a_replica_in_typescript_is_that_of_npm(tmp_path: Path) -> None:
    steps = dict(next_steps(tmp_path, Kind.replica, Names("quoter", "quoter.v1", "ghcr.io/acme"), Language.typescript))
    assert steps["test"] == f"cd {tmp_path} && npm install && npm run check && npm test"
