"""`reside build` of replicas in TypeScript against a real registry, with the real compiler, bundler and npm."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from support.jazz_server import node_binary
from support.registry import NAME, Registry, registry

from reside.build.cache import INCOMPLETE
from reside.build.language import Language
from reside.build.program import program_of
from reside.build.source import read_source
from reside.build.typescript import _bundle as bundle
from reside.build.typescript_kit import NATIVE, Kit, kit
from reside.cli.build import build_folder
from reside.cli.main import run
from reside.cli.new import Kind, make, parse_names
from reside.model.errors import InvalidInput
from reside.registry import Bytes, ImageReference, RegistryClient
from reside.registry.client import node_architecture

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(600)  # with an empty cache, npm installs the tools first

ROOT = Path(__file__).parents[3]
GREETER = ROOT / "examples/typescript/greeter"
RUNTIME = f"{NAME}/test/runtime:latest"
SETTINGS = "RESIDE_CONTROL_BLOCK_ID"
"""A variable that the program names if it is missing."""
PRINTING = 'import { Replica } from "@reside/replica";\nconsole.log(typeof new Replica().launch);\n'


@pytest.fixture(scope="module")
def tools() -> Kit:
    return kit()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        client = RegistryClient(running.mirrors)
        layer = Bytes(tar_of({"hello": b"below"}))
        config = {
            "architecture": node_architecture(),
            "os": "linux",
            "config": {"User": "65532:65532"},
            "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
        }
        anyio.run(client.push_image, ImageReference.parse(RUNTIME), json.dumps(config).encode(), [layer])
        yield running


@pytest.fixture(autouse=True)
def _no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a replica that prints a line."""
    made = tmp_path / "printing"
    made.mkdir()
    shutil.copy(GREETER / "replica.yaml", made)
    (made / "main.ts").write_text(PRINTING)
    return made


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def copy_tools(tools: Kit, cache: Path) -> None:
    """Put the installed tools into another cache."""
    copied = cache / "images" / tools.packages.name
    shutil.copytree(tools.packages, copied, copy_function=os.link, symlinks=True)


def run_bundle(folder: Path, tools: Kit, program: bytes) -> subprocess.CompletedProcess[str]:
    """Run a bundle as in the image: beside nothing but the native module."""
    app = folder / "app"
    app.mkdir()
    (app / "main.mjs").write_bytes(program)
    (folder / "node_modules").mkdir(exist_ok=True)
    for found in (tools.packages / "node_modules").glob(f"{NATIVE}*"):
        (folder / "node_modules" / found.name).symlink_to(found)
    command = [str(node_binary()), "main.mjs"]
    return subprocess.run(command, cwd=app, env={}, capture_output=True, text=True, timeout=60, check=False)


def bundle_of(folder: Path) -> tuple[bytes, set[str]]:
    """Return the program of a folder, and the names of all files of its image."""
    with program_of(read_source(folder, "v1")) as program:
        return program.files["main.mjs"].read_bytes(), set(program.files)


def test_the_same_folder_gives_the_same_image_on_every_machine(
    server: Registry, tools: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another path of the folder, and of the cache with the tools, stand for another machine."""
    build = partial(build_folder, push=True, runtime=RUNTIME, mirrors=server.mirrors)
    first = build(GREETER, "v1")
    shutil.copytree(GREETER, tmp_path / "elsewhere")
    copy_tools(tools, tmp_path / "cache")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("RESIDE_CACHE", str(tmp_path / "cache"))
        assert build(tmp_path / "elsewhere", "v2").digest == first.digest

    settings, layer = image_of(server, first.image)
    assert settings["Entrypoint"] == ["/opt/node/bin/node", "--max-semi-space-size=1", "main.mjs"]
    assert (settings["WorkingDir"], settings["User"]) == ("/app", "65532:65532")
    assert layer.keys() == {"app/main.mjs", "app/replica.yaml"}
    for trace in (str(tmp_path), str(tools.packages), str(ROOT)):
        assert trace.encode() not in layer["app/main.mjs"]
    done = run_bundle(tmp_path, tools, layer["app/main.mjs"])
    assert (done.returncode, done.stdout) == (2, "")
    assert SETTINGS in done.stderr


def image_of(server: Registry, image: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the settings of an image, and the files of its last layer."""
    reference = ImageReference.parse(image)
    with httpx2.Client(base_url=f"{server.url}/v2/{reference.repository}", trust_env=False) as client:
        accept = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
        manifest = client.get(f"/manifests/{reference.digest}", headers=accept).json()
        settings = client.get(f"/blobs/{manifest['config']['digest']}").json()["config"]
        layer = client.get(f"/blobs/{manifest['layers'][-1]['digest']}").content
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        content = {name: file.read() for name, file in files.items() if file is not None}
    return settings, content


def test_a_package_is_bundled_as_locked_and_none_of_its_scripts_runs(
    folder: Path,
    tools: Kit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its module is of the older format; it and the folder have scripts that npm runs by default."""
    ran = tmp_path / "ran"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), f"touch {ran}")
    with serving(tmp_path / "served") as address:
        packed = pack({"name": "hostile", "version": "1.0.0", "scripts": scripts}, tmp_path / "served/hostile.tgz")
        needed = {"hostile": "1.0.0", "zod": "4.1.11"}
        package = {"name": "printing", "type": "module", "scripts": scripts, "dependencies": needed}
        locked = {"version": "1.0.0", "resolved": f"{address}/hostile.tgz", "hasInstallScript": True}
        zod = json.loads((ROOT / "sdk/typescript/package-lock.json").read_text())["packages"]["node_modules/zod"]
        packages = {"": package, "node_modules/hostile": {**locked, "integrity": packed}, "node_modules/zod": zod}
        write(folder, package, packages)
        (folder / ".npmrc").write_text("ignore-scripts=false\n")
        (folder / "page.html").write_text("<p>hello</p>")
        (folder / "hostile.d.ts").write_text('declare module "hostile" { export function host(): string }\n')
        (folder / "main.ts").write_text(f'{PRINTING}import {{ host }} from "hostile";\nconsole.log(typeof host());\n')
        program, names = bundle_of(folder)
    assert names == {"main.mjs", "replica.yaml", "page.html"}
    assert not ran.exists()
    done = run_bundle(tmp_path, tools, program)
    assert done.stdout == "function\nstring\n", done.stderr

    packages["node_modules/hostile"]["integrity"] = f"sha512-{base64.b64encode(b'x' * 64).decode()}"
    with serving(tmp_path / "served", port=int(address.rpartition(":")[2])):
        write(folder, package, packages)
        monkeypatch.setenv("RESIDE_REGISTRY_MIRRORS", json.dumps({NAME: address}))
        monkeypatch.setenv("npm_config_fetch_retries", "0")  # it would try for more than a minute
        assert run(["build", str(folder), "--runtime", RUNTIME]) == 1
    assert "EINTEGRITY" in capsys.readouterr().err


def write(folder: Path, package: dict[str, Any], packages: dict[str, Any]) -> None:
    (folder / "package.json").write_text(json.dumps(package))
    lock = {"name": "printing", "lockfileVersion": 3, "requires": True, "packages": packages}
    (folder / "package-lock.json").write_text(json.dumps(lock))


def pack(package: dict[str, Any], path: Path) -> str:
    """Write a package whose module calls `require`; return its hash as lock files have it."""
    module = 'exports.host = () => require("node:os").hostname();\n'
    content = tar_of({"package/package.json": json.dumps(package).encode(), "package/index.js": module.encode()})
    path.write_bytes(content)
    return f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve a folder on loopback while the block is open; yield the address."""
    folder.mkdir(exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@pytest.fixture
def mirrored(server: Registry, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Return a registry that the command finds through the environment."""
    monkeypatch.setenv("RESIDE_REGISTRY_MIRRORS", json.dumps(server.mirrors))
    return server


def test_errors_of_types_are_shown_with_their_lines(
    mirrored: Registry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "main.ts").write_text('import { a } from "./absent.ts";\nconst port: number = "x";\nenum Color { red }\n')
    assert run(["build", str(folder), "--runtime", RUNTIME]) == 1
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.endswith("printing has errors of types: correct them")
    found = [line.split(": ")[:2] for line in lines]
    assert found[0] == ["  main.ts(1,19)", "error TS2307"]
    assert found[1] == ["  main.ts(2,7)", "error TS2322"]
    assert found[2] == ["  main.ts(3,6)", "error TS1294"], "Node could not run it in a test"


def test_a_missing_program_is_named_with_its_cure(
    mirrored: Registry, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run(["build", str(folder), "--runtime", RUNTIME]) == 1
    assert "node was not found: install Node.js 22.18 or later" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("kind", [Kind.replica, Kind.oneshot])
def test_a_new_folder_builds_and_passes_its_own_test(server: Registry, tools: Kit, tmp_path: Path, kind: Kind) -> None:
    folder = tmp_path / "on"  # YAML reads it as true, unless it is in quotes
    files = make(folder, kind, parse_names("on", f"{NAME}/new"), Language.typescript)
    assert {"main.ts", "main.test.ts", "package.json", tools.archive.name} <= set(files)
    built = build_folder(folder, "v1", push=True, runtime=RUNTIME, mirrors=server.mirrors)
    assert built.identity == f"{NAME}/new/on"
    _, layer = image_of(server, built.image)
    contract = {"app/on.v1/contract.yaml"} if kind is Kind.replica else set()
    if contract:
        assert run(["contract", "types", str(folder / "on.v1"), "--lang", "ts", "--file", str(tmp_path / "types")]) == 0
        assert (folder / "contract.ts").read_text() == (tmp_path / "types").read_text()
    assert layer.keys() == {"app/main.mjs", "app/replica.yaml", *contract}
    install(folder, tools)
    for command in (tools.compiler, [str(node_binary()), "--test"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def install(folder: Path, tools: Kit) -> None:
    """Do what `npm install` does in a new folder, from the packages that are installed already."""
    package = json.loads((folder / "package.json").read_text())
    modules = folder / "node_modules"
    for name, version in package["devDependencies"].items():
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        if version.startswith("file:"):
            with tarfile.open(folder / version.removeprefix("file:")) as archive:
                archive.extractall(modules / "@reside", filter="data")
            (modules / "@reside/package").rename(modules / name)
        else:
            (modules / name).symlink_to(tools.packages / "node_modules" / name)
    for name in ("cojson", NATIVE):  # of the package
        (modules / name).symlink_to(tools.packages / "node_modules" / name)


def test_a_bundle_contains_no_file_of_this_machine(folder: Path, tools: Kit, tmp_path: Path) -> None:
    """A package could name one, such as Docker's passwords, and send it away later from the cluster."""
    secret = tmp_path / "config.json"
    secret.write_text('{"auths": "sesame"}')
    app = tools.folder / f"{INCOMPLETE}test/app"
    app.mkdir(parents=True)
    try:
        for path in (str(secret), os.path.relpath(secret, app), "../../../package.json"):
            (app / "main.ts").write_text(f"console.log(require({json.dumps(path)}));\n")
            with pytest.raises(InvalidInput, match=r"imports .*\.json, which is outside of the folder") as refused:
                bundle(app, app.parent / "main.mjs", tools, folder)
            assert not (app.parent / "main.mjs").exists(), refused
        (app / "data.json").write_text("{}")
        (app / "main.ts").write_text(
            'import { Replica } from "@reside/replica";\nconsole.log(require("./data.json"));\n'
        )
        bundle(app, app.parent / "main.mjs", tools, folder)
    finally:
        shutil.rmtree(app.parent)
