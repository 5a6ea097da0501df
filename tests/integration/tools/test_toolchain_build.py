"""tools/build.py in a separate checkout, with real Go, for the smallest unit only."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]


def copy_modules(target: Path) -> Path:
    """Copy all Go modules, and the code that builds them, to a separate checkout."""
    for folder in ("tools", "engine"):
        shutil.copytree(CHECKOUT / folder, target / folder)
    return target


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_modules(tmp_path / "checkout")


def start(checkout: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, checkout / "tools/build.py", "--only", "pause", *arguments],
        env={**os.environ, "RESIDE_CACHE": str(checkout.parent / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def build(checkout: Path, *arguments: str) -> str:
    process = start(checkout, *arguments)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return out + err


def test_missing_units_are_built_into_the_cache_and_linked(checkout: Path) -> None:
    shown = build(checkout, "--print-bin")
    assert "pause" in shown
    assert "building (not built yet)" in shown
    binary = checkout / ".tools/bin/pause"
    assert binary.resolve().is_relative_to(checkout.parent / "cache")
    assert os.access(binary, os.X_OK)


def test_a_second_run_builds_nothing(checkout: Path) -> None:
    build(checkout)
    assert "building" not in build(checkout)


def test_a_damaged_cache_is_repaired(checkout: Path) -> None:
    build(checkout)
    binary = (checkout / ".tools/bin/pause").resolve()
    good = binary.read_bytes()
    binary.write_bytes(good[: len(good) // 2])
    assert "building (broken: pause is missing or cut off)" in build(checkout)
    assert len(binary.read_bytes()) == len(good)


def test_another_checkout_uses_the_same_entry(checkout: Path, tmp_path: Path) -> None:
    build(checkout)
    assert "building" not in build(copy_modules(tmp_path / "other"))


def test_a_changed_module_gets_a_new_entry_and_the_old_one_stays(checkout: Path) -> None:
    build(checkout)
    old = (checkout / ".tools/bin/pause").resolve()
    source = checkout / "tools/pause/main.go"
    source.write_text(source.read_text() + "\n// changed\n")
    shown = build(checkout)
    assert (checkout / ".tools/bin/pause").resolve() != old
    assert old.exists()
    assert str(old.parent.parent) in shown


def test_two_concurrent_builds_do_not_conflict(checkout: Path) -> None:
    both = [start(checkout), start(checkout)]
    shown = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("building" in text.replace("Another build", "") for text in shown) == 1


def test_a_source_that_does_not_compile_is_an_error_with_gos_output(checkout: Path) -> None:
    (checkout / "tools/pause/main.go").write_text("package main\n\nfunc main() { undefinedThing() }\n")
    process = start(checkout)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "undefinedThing" in err
    assert "Traceback" not in err


def test_without_go_the_error_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, checkout / "tools/build.py", "--only", "pause"],
        env={"PATH": str(tmp_path / "empty"), "HOME": str(tmp_path), "RESIDE_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Go 1.26 or newer is needed" in done.stderr
