"""tools/build.py in a separate checkout, with real Go, for the smallest unit only."""

import os
import shutil
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
PROGRAM = b"#!/bin/sh\n"
MEMBERS = {"pause": "bin/pause"}


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
        env={"RESIDE_FETCH": "0", **os.environ, "RESIDE_CACHE": str(checkout.parent / "cache")},
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


def serve_pause(checkout: Path, content: bytes) -> "subprocess.Popen[bytes]":
    """Pin an archive of the unit pause in the checkout, and serve this content in its place."""
    folder = checkout.parent / "served/vendor.example"
    folder.mkdir(parents=True)
    (checkout.parent / "pause").write_bytes(PROGRAM)
    with tarfile.open(checkout.parent / "pause.tgz", "w:gz") as tar:
        tar.add(checkout.parent / "pause", "bin/pause")
    archive = (checkout.parent / "pause.tgz").read_bytes()
    (folder / "pause.tgz").write_bytes(content or archive)
    pin = f'Download("https://vendor.example/pause.tgz", "sha256", "{sha256(archive).hexdigest()}", {MEMBERS})'
    source = checkout / "tools/builder/downloads.py"
    source.write_text(source.read_text() + f'\nDOWNLOADS = {{("pause", f"Linux {{os.uname().machine}}"): {pin}}}\n')
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "-d", str(folder.parent)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(("content", "fetched"), [(b"", True), (b"damaged", False)], ids=["right", "wrong checksum"])
def test_an_official_binary_is_fetched_or_else_built(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, fetched: bool
) -> None:
    with serve_pause(checkout, content) as server:
        assert server.stdout is not None
        said = server.stdout.readline().decode()
        monkeypatch.setenv("RESIDE_FETCH", f"http://127.0.0.1:{said.split()[5]}")
        shown = build(checkout)
        server.terminate()
    binary = (checkout / ".tools/bin/pause").resolve()
    assert (binary.read_bytes() == PROGRAM) is fetched
    assert ("pause                    fetched" in shown) is fetched
    assert ("building (not built yet)" in shown) is not fetched
    assert ("its sha256 is not the one that is pinned): it is built from source" in shown) is not fetched
    assert "fetching" not in build(checkout), "the cache has it now"
