"""Units that few targets need, and files that replace those of required modules."""

import subprocess
from pathlib import Path

import pytest

from tools.builder import __main__ as command
from tools.builder import golang, patches
from tools.builder.run import Run
from tools.builder.units import UNITS, Unit

CHECKOUT = Path(__file__).parents[3]
MODULE = "example.org/greeting"


@pytest.mark.parametrize(("arguments", "optional"), [([], False), (["--all"], True)])
def test_optional_units_are_built_only_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], optional: bool
) -> None:
    brought: list[Unit] = []
    monkeypatch.setenv("RESIDE_CACHE", str(tmp_path))
    monkeypatch.setattr(command, "LINK", tmp_path / "link")
    monkeypatch.setattr(Run, "bring", lambda _run, units, _packages: brought.extend(units))
    assert command.main(arguments) == 0
    assert [unit.name for unit in UNITS if unit.optional] == ["traefik", "cert-manager"]
    assert brought == [unit for unit in UNITS if optional or not unit.optional]


def test_make_up_does_not_build_them_and_make_test_does() -> None:
    rules = (CHECKOUT / "Makefile").read_text().splitlines()
    assert any(rule.startswith("up: tools ") for rule in rules)
    assert any(rule.startswith("test: alltools ") for rule in rules)


def test_a_unit_uses_a_copy_of_a_module_with_its_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real Go resolves the module to the copy, whose other files are those of the module."""
    original, module, root = tmp_path / "original", tmp_path / "unit", tmp_path / "cache"
    for folder in (original / "words", module / "patch/words", root):
        folder.mkdir(parents=True)
    (original / "go.mod").write_text(f"module {MODULE}\n\ngo 1.26\n")
    (original / "words/words.go").write_text("package words\n\nconst Text = full\n")
    (original / "words/full.go").write_text('package words\n\nconst full = "full"\n')
    (original / "words/full.go").chmod(0o444)
    (module / "patch/words/full.go").write_text('package words\n\nconst full = "slim"\n')
    (module / "go.mod").write_text(f"module unit\n\ngo 1.26\n\nrequire {MODULE} v1.0.0\n")
    (module / "go.sum").write_text("")
    (module / "main.go").write_text(f'package main\n\nimport "{MODULE}/words"\n\nfunc main() {{ print(words.Text) }}\n')
    unit = Unit("unit", {"unit": "."}, patches={MODULE: "patch"})
    monkeypatch.setattr(patches, "module_folder", lambda _module, _name: original)
    for _ in range(2):
        patches.prepare(unit, module, root)
    command_line = ["go", "run", *patches.flags(unit, root), "."]
    done = subprocess.run(command_line, cwd=module, capture_output=True, text=True, check=True)
    assert done.stderr == "slim"


def patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edits: str) -> str:
    """Return the file of a module with these edits."""
    original, module, root = tmp_path / "original", tmp_path / "unit", tmp_path / "cache"
    for folder in (original, module / "patch", root):
        folder.mkdir(parents=True)
    (original / "words.go").write_text("package words\n\nconst Text = 1\n\nconst Other = 1\n")
    (module / "patch/words.go.edits").write_text(edits)
    (module / "go.mod").write_text("module unit\n")
    (module / "go.sum").write_text("")
    monkeypatch.setattr(patches, "module_folder", lambda _module, _name: original)
    patches.prepare(Unit("unit", {"unit": "."}, patches={MODULE: "patch"}), module, root)
    return next(root.rglob("words.go")).read_text()


def test_edits_change_lines_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = "<<<<<<<\nconst Text = 1\n=======\nconst Text = 2\n>>>>>>>\n<<<<<<<\nconst Other = 1\n=======\n>>>>>>>\n"
    assert patched(tmp_path, monkeypatch, edits) == "package words\n\nconst Text = 2\n\n"


@pytest.mark.parametrize(("lines", "times"), [("const Missing = 1\n", 0), (" = 1\n", 2)])
def test_edits_of_other_lines_fail_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, times: int
) -> None:
    with pytest.raises(golang.BuildError, match=f"{times} times"):
        patched(tmp_path, monkeypatch, f"<<<<<<<\n{lines}=======\n>>>>>>>\n")


def test_a_unit_without_patches_has_no_flags(tmp_path: Path) -> None:
    unit = Unit("unit", {"unit": "."})
    patches.prepare(unit, tmp_path, tmp_path)
    assert patches.flags(unit, tmp_path) == []
    assert list(tmp_path.iterdir()) == []
