"""`reside build` reads a folder, and refuses bad ones with the file and the cure."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import pytest

from reside.build.program import program_of
from reside.build.source import check_reachable, parse_mirrors, read_source, registry_mirrors
from reside.model.constants import MANIFEST_LABEL
from reside.model.errors import InvalidInput, InvalidManifest
from reside.model.manifest import decode_label
from reside.registry import ImageReference, InvalidReference

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = "identity: registry.reside.internal/contracts/greeting.v1\n"
REPLICA = """identity: registry.reside.internal/greeter
info: {name: greeter, class: long-running, exclusive: false, scalable: true}
"""


def folder(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / name.replace("_", ".")).write_text(text)
    return path


def test_the_label_is_made_from_the_file(tmp_path: Path) -> None:
    source = read_source(folder(tmp_path, contract_yaml=CONTRACT), "v1")
    assert str(source.reference) == "registry.reside.internal/contracts/greeting.v1:v1"
    assert decode_label(source.labels[MANIFEST_LABEL]) == source.manifest


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "neither replica.yaml and contract.yaml"),
        ({"replica_yaml": REPLICA, "contract_yaml": CONTRACT}, "both replica.yaml and contract.yaml"),
        ({"replica_yaml": "a: ["}, "replica.yaml is not YAML"),
        ({"replica_yaml": "just words"}, "replica.yaml contains no manifest"),
        ({"replica_yaml": "- a\n- b\n"}, "replica.yaml contains no manifest"),
        ({"replica_yaml": CONTRACT}, "replica.yaml: the manifest does not match.*info: Field required"),
        ({"replica_yaml": "type: contract\n" + CONTRACT}, "describes a contract: rename the file to contract.yaml"),
        ({"contract_yaml": CONTRACT + "mehtods: {}\n"}, "mehtods: Extra inputs"),
        ({"replica_yaml": REPLICA.replace("greeter,", "Greeter,")}, "info.name"),
    ],
)
def test_an_invalid_folder_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_source(folder(tmp_path, **files), "latest")


def test_a_manifest_that_does_not_match_the_schema_is_invalid(tmp_path: Path) -> None:
    with pytest.raises(InvalidManifest, match=r"contract\.yaml"):
        read_source(folder(tmp_path, contract_yaml="identity: 5\n"), "latest")


def test_a_path_that_is_not_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere is not a folder"):
        read_source(tmp_path / "nowhere", "latest")


@pytest.mark.parametrize("tag", ["", "a b", "-x"])
def test_an_invalid_tag_is_refused(tmp_path: Path, tag: str) -> None:
    with pytest.raises(InvalidReference, match="its tag must be"):
        read_source(folder(tmp_path, contract_yaml=CONTRACT), tag)


def test_an_identity_without_a_registry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidReference, match="has no registry host"):
        read_source(folder(tmp_path, contract_yaml="identity: contracts/greeting\n"), "latest")


def test_caches_and_ignored_files_are_excluded_and_links_are_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("shared")
    inner = tmp_path / "replica"
    (inner / "__pycache__").mkdir(parents=True)
    (inner / "package").mkdir()
    folder(inner, replica_yaml=REPLICA, main_py="pass", Dockerfile="FROM x", _dockerignore="notes.txt\n", notes_txt="")
    (inner / "__pycache__/main.pyc").write_text("")
    (inner / "package/module.py").write_text("pass")
    (inner / "contract-copy.yaml").symlink_to(outside)
    source = read_source(inner, "latest")
    assert source.files() == ["contract-copy.yaml", "main.py", "package/module.py", "replica.yaml"]
    with program_of(source) as program:
        program.write_layer(tmp_path / "layer.tar")
    with tarfile.open(tmp_path / "layer.tar") as tar:
        names = tar.getnames()
        copied = tar.extractfile("app/contract-copy.yaml")
        assert copied is not None
        assert copied.read() == b"shared"
        assert all((member.uid, member.gid, member.mtime) == (0, 0, 0) for member in tar)
    assert [name for name in names if name.count("/") < 2] == [
        "app",
        "app/contract-copy.yaml",
        "app/main.py",
        "app/package",
        "app/replica.yaml",
    ]


def test_the_same_files_make_the_same_layer(tmp_path: Path) -> None:
    layers = []
    for name in ("one", "two"):
        inner = tmp_path / name
        inner.mkdir()
        source = read_source(folder(inner, replica_yaml=REPLICA, main_py="pass"), "latest")
        with program_of(source) as program:
            program.write_layer(tmp_path / f"{name}.tar")
        layers.append((tmp_path / f"{name}.tar").read_bytes())
    assert layers[0] == layers[1]


def test_mirrors_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "RESIDE_REGISTRY_MIRRORS", '{"a.example.org": "http://127.0.0.1:1", "b.example.org": "10.0.0.1:2"}'
    )
    assert registry_mirrors("default") == {"a.example.org": "http://127.0.0.1:1", "b.example.org": "http://10.0.0.1:2"}


@pytest.mark.parametrize("text", ["{", "[]", "5", '{"a": 1}'])
def test_invalid_mirrors_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="RESIDE_REGISTRY_MIRRORS must be JSON such as"):
        parse_mirrors(text)


def test_the_local_registry_needs_a_local_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RESIDE_REGISTRY_MIRRORS", raising=False)
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path))
    assert registry_mirrors("default") == {}
    with pytest.raises(InvalidInput, match="run `reside local up`"):
        check_reachable(ImageReference.parse("registry.reside.internal/a"), {})
