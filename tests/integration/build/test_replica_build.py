"""`reside build` against a real registry, with and without Docker, and its error messages."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from support.ports import free_port
from support.registry import NAME, Registry, registry

from reside.build.source import read_source
from reside.cli.build import build_folder
from reside.cli.main import run
from reside.model.constants import MANIFEST_LABEL
from reside.model.manifest import decode_label
from reside.registry import Bytes, Extension, FileBlob, ImageReference, RegistryClient
from reside.registry.client import node_architecture
from reside.registry.documents import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPLICA = f"""identity: {NAME}/examples/greeter
info: {{name: greeter, class: long-running, exclusive: false, scalable: true}}
"""
CONTRACT = f"identity: {NAME}/contracts/greeting.v1\n"
RUNTIME = f"{NAME}/test/runtime:latest"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        client = RegistryClient(running.mirrors)
        layer = Bytes(tar_of(hello=b"below"))
        config = {
            "architecture": node_architecture(),
            "os": "linux",
            "config": {"User": "65532", "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
        }
        reference = ImageReference.parse(RUNTIME)
        anyio.run(client.push_image, reference, json.dumps(config).encode(), [layer])
        yield running


@pytest.fixture(autouse=True)
def _own_docker(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a Docker of this module's own: no test waits for another build, or leaves images in the user's store."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("RESIDE_CACHE", str(cache))


@pytest.fixture
def mirrored(server: Registry, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Return a registry that the command finds through the environment."""
    monkeypatch.setenv("RESIDE_REGISTRY_MIRRORS", json.dumps(server.mirrors))
    return server


def test_the_identity_of_an_image_is_that_of_its_manifest(
    mirrored: Registry, replica: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", str(replica), "--push", "--runtime", RUNTIME]) == 0
    built = capsys.readouterr().out.strip()
    for image in (f"{NAME}/examples/greeter", built):
        assert run(["identity", image, "--output", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert f"{found['identity']}@{found['digest']}" == built
    client = RegistryClient(mirrored.mirrors)
    label = {MANIFEST_LABEL: read_source(replica, "latest").labels[MANIFEST_LABEL]}
    for name, labels, message in (("other", label, "but the image is"), ("empty", {}, "has no label")):
        anyio.run(client.push_label_image, ImageReference.parse(f"{NAME}/examples/{name}:latest"), labels)
        assert run(["identity", f"{NAME}/examples/{name}"]) == 1
        assert message in capsys.readouterr().err
    assert run(["identity", f"{NAME}/examples/none"]) == 1


def test_the_registry_is_that_of_the_local_cluster_that_is_named(
    server: Registry,
    replica: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = tmp_path_factory.mktemp("local")
    server.write_local_cluster(state / "team")
    monkeypatch.delenv("RESIDE_REGISTRY_MIRRORS", raising=False)
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(state))
    build = ["build", str(replica), "--tag", "of-team", "--push", "--runtime", RUNTIME]
    assert run(build) == 1
    assert "name your cluster with --local-cluster" in capsys.readouterr().err
    assert run([*build, "--local-cluster", "team"]) == 0
    built = capsys.readouterr().out.strip()
    image = f"{NAME}/examples/greeter:of-team"
    assert run(["identity", image]) == 1
    capsys.readouterr()
    assert run(["identity", image, "--local-cluster", "team", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert f"{found['identity']}@{found['digest']}" == built
    contract = tmp_path_factory.mktemp("contract")
    (contract / "contract.yaml").write_text(CONTRACT)
    assert run(["build", str(contract), "--push", "--local-cluster", "team"]) == 0
    image = capsys.readouterr().out.strip()
    assert run(["contract", "types", image, "--lang", "ts", "--local-cluster", "team"]) == 0


def test_the_types_of_an_image_are_those_of_its_folder(
    mirrored: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    built = build_folder(tmp_path, "v1", push=True, mirrors=mirrored.mirrors).image
    for source in (built, str(tmp_path)):
        assert run(["contract", "types", source, "--lang", "ts"]) == 0
    of_image, of_folder = capsys.readouterr().out.split("// Written by")[1:]
    assert of_image == of_folder


@pytest.fixture
def replica(tmp_path: Path) -> Path:
    (tmp_path / "replica.yaml").write_text(REPLICA)
    (tmp_path / "main.py").write_text("print('hello')\n")
    return tmp_path


def tar_of(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def labels_of(server: Registry, image: str) -> dict[str, str]:
    reference = ImageReference.parse(image)
    assert reference.digest is not None
    return anyio.run(RegistryClient(server.mirrors).describe, reference, reference.digest).labels


def test_a_contract_is_pushed_with_its_label_and_no_layer(server: Registry, tmp_path: Path) -> None:
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    built = build_folder(tmp_path, "v1", push=True, mirrors=server.mirrors)
    manifest = decode_label(labels_of(server, built.image)[MANIFEST_LABEL])
    assert (manifest.type, manifest.identity) == ("contract", f"{NAME}/contracts/greeting.v1")


def test_a_replica_is_pushed_without_docker(server: Registry, replica: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    built = build_folder(replica, "v1", push=True, runtime=RUNTIME, mirrors=server.mirrors)
    manifest = decode_label(labels_of(server, built.image)[MANIFEST_LABEL])
    assert (manifest.type, manifest.identity) == ("replica", built.identity)


@pytest.mark.parametrize("kind", ["replica", "oneshot", "contract"])
def test_a_new_folder_builds_and_passes_its_own_test(server: Registry, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "on"  # YAML reads it as true, unless it is in quotes
    assert run(["new", str(folder), "--kind", kind, "--registry", f"{NAME}/new"]) == 0
    folders = {folder, *(path.parent for path in folder.glob("*/contract.yaml"))}
    built = {build_folder(each, "v1", push=True, runtime=RUNTIME, mirrors=server.mirrors).identity for each in folders}
    names = {"replica": {"on", "on.v1"}, "oneshot": {"on"}, "contract": {"on.v1"}}
    assert built == {f"{NAME}/new/{name}" for name in names[kind]}
    done = subprocess.run([sys.executable, "-m", "pytest"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if kind != "contract":
        assert {"main.py", "replica.yaml"} <= set(read_source(folder, "v1").files())
        assert not [name for name in read_source(folder, "v1").files() if "test" in name]


def test_a_build_without_a_push_prints_the_same_digest(server: Registry, replica: Path) -> None:
    make = partial(build_folder, replica, runtime=RUNTIME, mirrors=server.mirrors)
    (replica / "main.py").write_text("print('not pushed')\n")
    dry = make("dry", push=False)
    assert (dry.pushed, make("dry", push=True).digest) == (False, dry.digest)


def test_versions_share_the_identity_and_differ_by_digest(server: Registry, replica: Path) -> None:
    first = build_folder(replica, "v1", push=True, runtime=RUNTIME, mirrors=server.mirrors)
    (replica / "main.py").write_text("print('good day')\n")
    second = build_folder(replica, "v2", push=True, runtime=RUNTIME, mirrors=server.mirrors)
    client = RegistryClient(server.mirrors)
    assert first.identity == second.identity
    assert first.digest != second.digest
    assert anyio.run(client.resolve, ImageReference.parse(f"{first.identity}:v1")) == first.digest
    assert anyio.run(client.resolve, ImageReference.parse(f"{first.identity}:v2")) == second.digest


def test_a_replica_with_a_dockerfile_is_built_by_docker_and_labelled(server: Registry, replica: Path) -> None:
    (replica / "Dockerfile").write_text("ARG RUNTIME\nFROM ${RUNTIME}\nCOPY . /app/\nENV EXTRA=1\n")
    built = build_folder(replica, "docker", push=True, runtime=RUNTIME, mirrors=server.mirrors)
    assert decode_label(labels_of(server, built.image)[MANIFEST_LABEL]).identity == built.identity


def test_a_failing_dockerfile_is_reported_with_dockers_reason(
    mirrored: Registry, replica: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (replica / "Dockerfile").write_text("ARG RUNTIME\nFROM ${RUNTIME}\nCOPY missing /app/\n")
    assert run(["build", str(replica), "--runtime", RUNTIME]) == 1
    assert "missing" in said(capsys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--runtime", f"{NAME}/test/absent"],
            f"image '{NAME}/test/absent:latest': registry '{NAME}' has no such image",
        ),
        (["--runtime", "python"], "image 'python': it has no registry host"),
        (["--runtime", RUNTIME, "--tag", "no tag"], "its tag must be"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_1(
    mirrored: Registry, replica: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", str(replica), "--push", *options]) == 1
    assert message in said(capsys)


def test_a_registry_that_is_down_is_one_line_and_exit_code_1(
    replica: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RESIDE_REGISTRY_MIRRORS", json.dumps({NAME: f"http://127.0.0.1:{free_port()}"}))
    assert run(["build", str(replica), "--push"]) == 1
    assert "can't be reached" in said(capsys)


def test_the_result_is_json_for_programs(
    mirrored: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    assert run(["build", str(tmp_path), "--tag", "v1", "--push", "--output", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["image"] == f"{result['identity']}@{result['digest']}"
    assert (result["type"], result["tag"], result["pushed"]) == ("contract", "v1", True)


def test_extending_mounts_the_layers_below_and_sends_the_new_one(server: Registry, tmp_path: Path) -> None:
    path = tmp_path / "layer.tar"
    path.write_bytes(tar_of(above=b"x" * 100_000))
    client = RegistryClient(server.mirrors)
    target = ImageReference.parse(f"{NAME}/test/extended:v1")
    extend = partial(client.extend, ImageReference.parse(RUNTIME), target, FileBlob.of(path), Extension({"a": "b"}))
    digest = anyio.run(extend)
    assert anyio.run(client.resolve, target) == digest
    assert anyio.run(client.describe, target, digest).labels == {"a": "b"}
    assert FileBlob.of(path).digest == digest_of(path.read_bytes())


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the printed error, which must not be a traceback."""
    text = " ".join(capsys.readouterr().err.split())
    assert "Traceback" not in text
    return text
