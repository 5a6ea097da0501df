"""`reside contract types` of a folder; tests/integration/build has that of an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from reside.cli.main import run
from reside.cli.new import Kind, make, parse_names

EXAMPLES = Path(__file__).parents[3] / "examples"
CONTRACT = str(EXAMPLES / "contracts" / "greeting.v1")


@pytest.mark.parametrize(
    ("lang", "file"),
    [
        ("python", "replicas/greeter/greeting.py"),
        ("python", "replicas/greeter-v2/greeting.py"),
        ("ts", "typescript/greeter/greeting.ts"),
        ("ts", "typescript/caller/greeting.ts"),
    ],
)
def test_the_examples_have_the_types_of_the_published_contract(
    tmp_path: Path, lang: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If this fails: `reside contract types examples/contracts/greeting.v1 --lang LANG --file examples/FILE`."""
    written = tmp_path / "types"
    assert run(["contract", "types", CONTRACT, "--lang", lang, "--file", str(written)]) == 0
    assert (EXAMPLES / file).read_text() == written.read_text()
    assert run(["contract", "types", CONTRACT, "--lang", lang]) == 0
    assert capsys.readouterr().out == written.read_text()


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "hello", Kind.replica, parse_names("hello", "ghcr.io/acme"))
    assert run(["contract", "types", str(tmp_path / "hello"), "--lang", "ts"]) == 1
    assert "is a replica: name a contract" in capsys.readouterr().err
    assert run(["contract", "types", CONTRACT, "--lang", "cobol"]) == 2
    assert run(["contract", "types", CONTRACT, "--lang", "ts", "--file", str(tmp_path / "none" / "types.ts")]) == 1
    assert "none/types.ts" in capsys.readouterr().err


def test_a_schema_that_is_not_understood_leaves_the_file_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "{type: object, properties: {name: {type: string, pattern: a}}}"
    text = f"identity: ghcr.io/acme/hello.v1\nmethods: {{greet: {{body: {body}}}}}\n"
    (tmp_path / "contract.yaml").write_text(text)
    file = tmp_path / "types.py"
    file.write_text("kept")
    assert run(["contract", "types", str(tmp_path), "--lang", "python", "--file", str(file)]) == 1
    assert "methods/greet/body/properties/name: pattern: this keyword" in capsys.readouterr().err
    assert file.read_text() == "kept"
