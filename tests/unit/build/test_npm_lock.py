"""Which npm files a replica is built from, and what is refused before npm is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reside.build.npm_lock import NpmFiles, needs_packages, read_npm_files
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

PROVIDED = {"@reside/replica": "0.1.0", "jazz-tools": "0.20.19", "zod": "4.1.11"}
FETCHED = {"version": "2.1.3", "resolved": "https://registry.example/ms.tgz", "integrity": "sha512-x"}


def files(package: Mapping[str, Any] | None, packages: Mapping[str, Any] | None = None) -> NpmFiles:
    lock = None if packages is None else {"lockfileVersion": 3, "packages": {"": {}, **packages}}
    return NpmFiles(Path("hello"), package, lock)


@pytest.mark.parametrize(
    "package",
    [
        None,
        {},
        {"devDependencies": {"typescript": "5.9.3"}},
        {"peerDependencies": {"react": "19"}},
        {"dependencies": {"@reside/replica": "0.1.0", "jazz-tools": "0.20.19", "zod": "4.1.11"}},
    ],
)
def test_a_replica_that_needs_what_reside_provides_needs_no_lock_file(package: Mapping[str, Any] | None) -> None:
    assert not needs_packages(files(package), PROVIDED)


@pytest.mark.parametrize("kind", ["dependencies", "optionalDependencies"])
def test_packages_of_its_own_are_installed_as_locked(kind: str) -> None:
    others = {
        "node_modules/without-address": {"version": "1.0.0", "integrity": "sha512-x"},
        "node_modules/ms/node_modules/inner": {"version": "1.0.0", "inBundle": True},
        "node_modules/@reside/replica": {"version": "0.1.0", "resolved": "file:reside-replica-0.1.0.tgz", "dev": True},
        "node_modules/tool": {"version": "1.0.0", "resolved": "git+ssh://git@example.org/tool.git#1", "dev": True},
    }
    assert needs_packages(files({kind: {"ms": "2.1.3"}}, {"node_modules/ms": FETCHED, **others}), PROVIDED)


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (None, r"hello/package-lock.json is missing, and package.json depends on ms: run `npm install` in"),
        ({"node_modules/ms": {**FETCHED, "resolved": "git+https://example.org/ms.git#1"}}, "has ms from git"),
        ({"node_modules/ms": {**FETCHED, "resolved": "file:ms.tgz"}}, "has ms from file:ms.tgz: .* registry only"),
        ({"node_modules/ms": {"resolved": "packages/ms", "link": True}}, "has ms from packages/ms"),
        ({"node_modules/ms": {"version": "2.1.3"}}, "has no hash of ms: remove the file, and run `npm install`"),
        ({"node_modules/a/node_modules/@b/c": {"version": "1", "devOptional": True}}, "has no hash of @b/c"),
        ({"node_modules/ms": FETCHED, "node_modules/zod": {"version": "3.25.0"}}, r"zod 3.25.0, .* with 4.1.11"),
    ],
)
def test_a_package_whose_content_is_not_fixed_is_refused(packages: Mapping[str, Any] | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        needs_packages(files({"dependencies": {"ms": "2.1.3"}}, packages), PROVIDED)


def test_editors_and_tests_use_the_versions_that_replicas_run_with() -> None:
    packages = {"node_modules/@reside/replica": {"version": "0.0.9", "dev": True}}
    with pytest.raises(InvalidInput, match=r"has @reside/replica 0.0.9, and replicas run with 0.1.0: set this version"):
        needs_packages(files({"devDependencies": {"@reside/replica": "file:old.tgz"}}, packages), PROVIDED)


def test_a_lock_file_of_npm_6_is_refused() -> None:
    old = NpmFiles(Path("hello"), {"dependencies": {"ms": "2.1.3"}}, {"lockfileVersion": 1, "dependencies": {}})
    with pytest.raises(InvalidInput, match="npm 6 or older"):
        needs_packages(old, PROVIDED)


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
    assert not needs_packages(files(package, {"node_modules/zod": "4", "node_modules/x": None}), PROVIDED)
