"""The toolchain's build: what comes from the cache, from PATH, or is built again."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.builder import cache, debian, golang, onpath
from tools.builder.units import UNITS, Unit, VersionCheck


def program(path: Path, output: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


def filled(folder: Path) -> cache.Entry:
    entry = cache.Entry(folder)
    entry.write(lambda target: program(target / "tool", "1") and None)
    return entry


def test_a_whole_entry_has_no_fault(tmp_path: Path) -> None:
    assert filled(tmp_path / "unit-1").fault(["tool"]) is None


def test_an_entry_that_was_never_built_says_so(tmp_path: Path) -> None:
    assert cache.Entry(tmp_path / "unit-1").fault(["tool"]) == "not built yet"


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (lambda entry: (entry.folder / cache.MARKER).unlink(), "half-written"),
        (lambda entry: (entry.folder / cache.MARKER).write_text("{"), "half-written"),
        (lambda entry: (entry.bin / "tool").unlink(), "missing"),
        (lambda entry: (entry.bin / "tool").write_text("short"), "cut off"),
        (lambda entry: (entry.bin / "tool").write_text("#!/bin/sh\necho '2'\n"), "not what was built"),
        (lambda entry: (entry.bin / "tool").chmod(0o644), "can't be run"),
    ],
    ids=["no marker", "broken marker", "missing", "cut off", "same size, other bytes", "not executable"],
)
def test_every_kind_of_damage_is_detected_and_repaired(
    tmp_path: Path, harm: Callable[[cache.Entry], object], fault: str
) -> None:
    entry = filled(tmp_path / "unit-1")
    harm(entry)
    found = entry.fault(["tool"])
    assert found is not None
    assert fault in found
    filled(entry.folder)
    assert entry.fault(["tool"]) is None


def test_a_touched_but_equal_binary_is_good(tmp_path: Path) -> None:
    entry = filled(tmp_path / "unit-1")
    os.utime(entry.bin / "tool", (1, 1))
    assert entry.fault(["tool"]) is None


def test_a_failed_build_leaves_nothing_and_the_files_of_a_killed_one_are_removed(tmp_path: Path) -> None:
    def fail(target: Path) -> None:
        program(target / "half", "1")
        raise RuntimeError("the compiler fell over")

    with pytest.raises(RuntimeError):
        cache.Entry(tmp_path / "unit-1").write(fail)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".unit-1-killed" / "bin").mkdir(parents=True)
    cache.sweep_drafts(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_hash_changes_with_contents_names_and_flags(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("a")
    first = cache.folder_hash(tmp_path, "flags")
    assert cache.folder_hash(tmp_path, "flags") == first
    assert cache.folder_hash(tmp_path, "other flags") != first
    (tmp_path / "go.mod").write_text("b")
    second = cache.folder_hash(tmp_path, "flags")
    (tmp_path / "go.mod").rename(tmp_path / "go.sum")
    assert len({first, second, cache.folder_hash(tmp_path, "flags")}) == 3


def test_a_modules_tests_do_not_affect_its_hash(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text("package main")
    first = cache.folder_hash(tmp_path)
    (tmp_path / "main_test.go").write_text("package main")
    assert cache.folder_hash(tmp_path) == first


def test_a_folder_that_replaces_a_module_affects_the_hash(tmp_path: Path) -> None:
    (tmp_path / "module/inner").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "module/go.mod").write_text(
        "module m\n\nreplace (\n\ta.dev/a => ../other\n\tb.dev/b => ./inner\n\tc.dev/c => d.dev/d v1.0.0\n)\n"
    )
    assert golang.replacements(tmp_path / "module") == [tmp_path / "other"]


def test_every_unit_has_a_module_in_the_checkout() -> None:
    for unit in UNITS:
        assert (Path(__file__).parents[3] / unit.module / "go.mod").is_file(), unit.name


def test_the_link_moves_at_once_but_never_replaces_a_folder(tmp_path: Path) -> None:
    link = tmp_path / ".tools"
    cache.point(link, tmp_path / "one")
    cache.point(link, tmp_path / "two")
    assert link.readlink() == tmp_path / "two"
    link.unlink()
    link.mkdir()
    with pytest.raises(FileExistsError, match="in the way"):
        cache.point(link, tmp_path / "two")


def test_the_name_of_a_set_depends_on_its_content(tmp_path: Path) -> None:
    one = cache.write_set(tmp_path, {"a": tmp_path / "x"})
    assert cache.write_set(tmp_path, {"a": tmp_path / "x"}) == one
    assert cache.write_set(tmp_path, {"a": tmp_path / "y"}) != one
    assert (one / "bin" / "a").readlink() == tmp_path / "x"


UNIT = Unit("unit", {"tool": "."}, checks={"tool": VersionCheck(("--version",), "v1.2.3")})


@pytest.mark.parametrize(("output", "used"), [("Tool v1.2.3", True), ("Tool v1.2.30", False), ("v1.2.3-rc.1", False)])
def test_a_binary_on_path_is_used_only_in_the_right_version(tmp_path: Path, output: str, used: bool) -> None:
    path = program(tmp_path / "bin" / "tool", output)
    assert onpath.usable(UNIT, tmp_path / "cache", str(path.parent)) == ({"tool": path} if used else {})


def test_a_correct_binary_after_a_wrong_one_on_path_is_used(tmp_path: Path) -> None:
    program(tmp_path / "old" / "tool", "v1.0.0")
    right = program(tmp_path / "new" / "tool", "v1.2.3")
    search = os.pathsep.join([str(tmp_path / "old"), str(tmp_path / "new")])
    assert onpath.usable(UNIT, tmp_path / "cache", search) == {"tool": right}


def test_links_into_our_own_cache_are_no_reason_not_to_build(tmp_path: Path) -> None:
    binary = program(tmp_path / "cache" / "unit-1" / "bin" / "tool", "v1.2.3")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tool").symlink_to(binary)
    assert onpath.usable(UNIT, tmp_path / "cache", str(tmp_path / "links")) == {}


def test_the_language_host_is_taken_from_path_with_all_its_files_or_not_at_all(tmp_path: Path) -> None:
    host = next(unit for unit in UNITS if unit.name == "pulumi-language-python")
    folder = tmp_path / "bin"
    program(folder / "pulumi", "v3.259.0")
    program(folder / "pulumi-language-python", "whatever")
    assert onpath.usable(host, tmp_path / "cache", str(folder)) == {}
    for name in host.copies:
        program(folder / name, "")
    assert set(onpath.usable(host, tmp_path / "cache", str(folder))) == set(host.binaries)


def test_missing_debian_packages_are_named_once_each(tmp_path: Path) -> None:
    program(tmp_path / "ip", "")
    missing = debian.missing(str(tmp_path))
    assert "iproute2" in missing, "ss is of the same package and missing"
    assert len(missing) == len(set(missing))
    assert "apt-get install" in debian.install_command(missing)
    assert set(debian.missing(str(tmp_path), tests=True)) - set(missing) == {"chromium-headless-shell"}


def test_the_marker_holds_size_and_hash_of_each_binary(tmp_path: Path) -> None:
    entry = filled(tmp_path / "unit-1")
    marker = json.loads((entry.folder / cache.MARKER).read_text())
    assert marker["tool"]["size"] == (entry.bin / "tool").stat().st_size
    assert marker["tool"]["sha256"] == cache.file_hash(entry.bin / "tool")
    assert stat.S_IMODE(entry.folder.stat().st_mode) == 0o755
