"""Which packages a replica is built from, and what is refused before npm is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reside.build.npm_lock import NpmFiles, read_npm_files, to_install
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

PROVIDED = {"@reside/replica": "0.1.0", "jazz-tools": "0.20.19", "zod": "4.1.11"}
FETCHED = {"version": "2.1.3", "resolved": "https://registry.example/ms.tgz", "integrity": "sha512-x"}


def files(package: Mapping[str, Any] | None, packages: Mapping[str, Any] | None = None) -> NpmFiles:
    lock = None if packages is None else {"lockfileVersion": 3, "packages": {"": {}, **packages}}
    return NpmFiles(Path("hello"), package, lock)


def installed(package: Mapping[str, Any], packages: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the dependencies of the program, and the entries of its lock file."""
    found = to_install(files(package, {f"node_modules/{name}": entry for name, entry in packages.items()}), PROVIDED)
    assert found is not None
    root, lock = json.loads(found["package.json"]), json.loads(found["package-lock.json"])
    entries = lock["packages"]
    assert entries.pop("")["dependencies"] == root["dependencies"]
    return root, {path.removeprefix("node_modules/"): entry for path, entry in entries.items()}


@pytest.mark.parametrize(
    "package",
    [
        None,
        {},
        {"devDependencies": {"typescript": "5.9.3", "@types/ms": "2"}},
        {"peerDependencies": {"react": "19"}},
        {"dependencies": {"@reside/replica": "0.1.0", "jazz-tools": "0.20.19", "zod": "4.1.11"}},
    ],
)
def test_a_replica_that_needs_what_reside_provides_needs_no_lock_file(package: Mapping[str, Any] | None) -> None:
    assert to_install(files(package), PROVIDED) is None


@pytest.mark.parametrize("kind", ["dependencies", "optionalDependencies"])
def test_the_packages_of_the_program_are_installed_and_no_tools(kind: str) -> None:
    package = {"scripts": {"preinstall": "touch /tmp/x"}, kind: {"ms": "^2"}, "devDependencies": {"tool": "1"}}
    tool = {"version": "1.0.0", "resolved": "git+ssh://git@example.org/tool.git#1", "dev": True}
    root, entries = installed(package, {"ms": FETCHED, "tool": tool, "inner": FETCHED})
    assert root == {"name": "program", "dependencies": {"ms": "^2"}}
    assert entries == {"ms": FETCHED}


def test_types_of_packages_are_installed_also_if_they_are_for_the_editor() -> None:
    package = {"dependencies": {"ms": "^2"}, "devDependencies": {"@types/ms": "1", "tool": "1"}}
    _, entries = installed(package, {"ms": FETCHED, "@types/ms": {**FETCHED, "dev": True}, "tool": FETCHED})
    assert entries == {"ms": FETCHED, "@types/ms": FETCHED}


def test_a_package_comes_with_the_ones_that_node_finds_for_it() -> None:
    ours = {**FETCHED, "dependencies": {"b": "1", "c": "1"}, "optionalDependencies": {"absent": "1", "mac": "1"}}
    packages = {
        "a": ours,
        "b": {**FETCHED, "version": "2.0.0"},
        "a/node_modules/b": {**FETCHED, "dependencies": {"c": "1"}},
        "c": {**FETCHED, "dependencies": {"a": "1"}},
        "mac": {**FETCHED, "os": ["darwin"], "devOptional": True},
        "other": FETCHED,
    }
    _, entries = installed({"dependencies": {"a": "1"}}, packages)
    assert entries.keys() == {"a", "a/node_modules/b", "c", "mac"}
    assert entries["mac"] == {**FETCHED, "os": ["darwin"], "optional": True}


def test_what_reside_provides_is_not_installed_for_other_packages_either() -> None:
    """Only one copy of jazz-tools works; a package that brings another version of zod keeps it."""
    forms = {**FETCHED, "dependencies": {"zod": "^4", "ms": "2"}, "peerDependencies": {"jazz-tools": "*"}}
    packages = {
        "forms": forms,
        "ms": FETCHED,
        "zod": {**FETCHED, "version": "4.1.11"},
        "jazz-tools": {**FETCHED, "version": "0.20.19", "dependencies": {"cojson": "1"}},
        "cojson": FETCHED,
        "old": {**FETCHED, "dependencies": {"zod": "^3"}},
        "old/node_modules/zod": {**FETCHED, "version": "3.25.0"},
    }
    package = {"dependencies": {"forms": "1", "old": "1", "zod": "4.1.11"}}
    root, entries = installed(package, packages)
    assert root["dependencies"] == {"forms": "1", "old": "1"}
    assert entries.keys() == {"forms", "ms", "old", "old/node_modules/zod"}
    assert entries["forms"] == {**FETCHED, "dependencies": {"ms": "2"}, "peerDependencies": {}}


def test_a_peer_that_npm_has_chosen_is_a_dependency_of_the_program() -> None:
    packages = {
        "dom": {**FETCHED, "peerDependencies": {"react": "^19", "none": "1"}},
        "react": {**FETCHED, "peer": True},
    }
    root, entries = installed({"dependencies": {"dom": "1"}, "overrides": {"react": "2.1.3"}}, packages)
    assert root["dependencies"] == {"dom": "1", "react": "2.1.3"}
    assert root["overrides"] == {"react": "2.1.3"}
    assert entries["react"] == FETCHED


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (None, r"hello/package-lock.json is missing, and package.json depends on ms: run `npm install` in"),
        ({"node_modules/ms": {**FETCHED, "resolved": "git+https://example.org/ms.git#1"}}, "has ms from git"),
        ({"node_modules/ms": {**FETCHED, "resolved": "file:ms.tgz"}}, "has ms from file:ms.tgz: .* registry only"),
        ({"node_modules/ms": {"resolved": "packages/ms", "link": True}}, "has ms from packages/ms"),
        ({"node_modules/ms": {"version": "2.1.3"}}, "has no hash of ms: remove the file, and run `npm install`"),
        ({"node_modules/ms": FETCHED, "node_modules/zod": {"version": "3.25.0"}}, r"zod 3.25.0, .* with 4.1.11"),
        (
            {
                "node_modules/ms": {**FETCHED, "dependencies": {"@b/c": "1"}},
                "node_modules/ms/node_modules/@b/c": {"version": "1", "devOptional": True},
            },
            "has no hash of @b/c",
        ),
    ],
)
def test_a_package_whose_content_is_not_fixed_is_refused(packages: Mapping[str, Any] | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        to_install(files({"dependencies": {"ms": "2.1.3"}}, packages), PROVIDED)


def test_a_package_inside_of_another_one_needs_no_hash_of_its_own() -> None:
    packages = {"ms": {**FETCHED, "dependencies": {"inner": "1"}}, "ms/node_modules/inner": {"inBundle": True}}
    _, entries = installed({"dependencies": {"ms": "1"}}, packages)
    assert entries["ms/node_modules/inner"] == {"inBundle": True}


def test_editors_and_tests_use_the_versions_that_replicas_run_with() -> None:
    packages = {"node_modules/@reside/replica": {"version": "0.0.9", "dev": True}}
    with pytest.raises(InvalidInput, match=r"has @reside/replica 0.0.9, and replicas run with 0.1.0: set this version"):
        to_install(files({"devDependencies": {"@reside/replica": "file:old.tgz"}}, packages), PROVIDED)


def test_a_lock_file_of_npm_6_is_refused() -> None:
    old = NpmFiles(Path("hello"), {"dependencies": {"ms": "2.1.3"}}, {"lockfileVersion": 1, "dependencies": {}})
    with pytest.raises(InvalidInput, match="npm 6 or older"):
        to_install(old, PROVIDED)


@pytest.mark.parametrize("text", ["[]", "{", "[" * 100_000, "\udcff"])
def test_a_file_that_is_no_object_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidInput, match=r"package.json is not a JSON object"):
        read_npm_files(tmp_path)


@pytest.mark.parametrize(
    "package",
    [{"dependencies": ["ms"]}, {"dependencies": None}, {"dependencies": 5, "optionalDependencies": "ms"}],
)
def test_members_of_other_types_count_as_missing(package: Mapping[str, Any]) -> None:
    assert to_install(files(package, {"node_modules/zod": "4", "node_modules/x": None}), PROVIDED) is None


def test_the_path_of_a_package_may_be_anything() -> None:
    packages = {"ms": {**FETCHED, "dependencies": {"x": "1"}}, "ms/node_modules/x": None, "x": FETCHED, "/": FETCHED}
    _, entries = installed({"dependencies": {"ms": "1"}}, packages)
    assert entries.keys() == {"ms", "x"}
