"""The package `@reside/replica` of `sdk/typescript`, packed and installed, and programs that use it.

The packages that it needs, and the package itself, are those with which `reside build` works, from its cache.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tarfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from support.eventually import eventually
from support.jazz_server import install_packages, node_binary

from reside.build.typescript_kit import kit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdk" / "typescript"
PAGE = ROOT / "examples" / "typescript" / "console" / "page"
PROGRAMS = (ROOT / "examples" / "typescript", ROOT / "tests" / "integration" / "replica" / "typescript")
_VECTORS = ROOT / "tests" / "vectors" / "wire"
_WITHIN_S = 300


class TypeScript:
    """A copy of the package, and of the programs of examples and tests with the packed package in their `node_modules`.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._kit = kit()
        self._modules = self._kit.packages / "node_modules"
        self._package = folder / "package"
        self._programs = folder / "programs"
        shutil.copytree(SDK, self._package, ignore=shutil.ignore_patterns("node_modules", "dist"))
        for programs in PROGRAMS:
            shutil.copytree(programs, self._programs, dirs_exist_ok=True)
        (self._package / "node_modules").symlink_to(self._modules)

    def install(self) -> None:
        """Install the packed package for the programs."""
        modules = self._programs / "node_modules"
        (modules / "@reside").mkdir(parents=True)
        with tarfile.open(self._kit.archive) as archive:
            archive.extractall(modules / "@reside", filter="data")
        (modules / "@reside" / "package").rename(modules / "@reside" / "replica")
        for name in self._kit.settings["dependencies"]:
            (modules / name).symlink_to(self._modules / name)
        for name in ("@types", "cojson-transport-ws"):
            (modules / name).symlink_to(self._modules / name)

    def bundle_page(self) -> bytes:
        """Bundle the script of the page of `examples/typescript/console`, and return it."""
        page = self._programs / "console" / "page"
        modules = page / "node_modules"
        if not modules.exists():
            modules.symlink_to(install_packages(PAGE) / "node_modules")
        script = json.loads((page / "package.json").read_text())["scripts"]["build"]
        program, *arguments = script.split()
        self._run([str(node_binary()), str((modules / ".bin" / program).resolve()), *arguments], page)
        return (page / "page.js").read_bytes()

    def check(self) -> None:
        """Check the types and the style of the package, and the types of the programs; run the package's tests."""
        every = {
            "extends": "./tsconfig.json",
            "include": ["src", "test", "../programs/*/*.ts", "../programs/*/page/*.ts"],
        }
        (self._package / "tsconfig.every.json").write_text(json.dumps(every))
        self.run("tsc", "--noEmit", "-p", "tsconfig.every.json")
        self.run("eslint", ".")
        tests = sorted(str(path) for path in (self._package / "test").glob("*.test.ts"))
        assert "# fail 0" in self.run(
            "node", "--no-warnings", "--test", "--test-timeout=60000", "--test-reporter=tap", *tests
        )

    def compile(self, files: Mapping[str, str], name: str) -> Path:
        """Write a folder of programs, and check its types; return it."""
        folder = self._programs / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text)
        included = {"extends": "./tsconfig.json", "include": [f"../programs/{name}/*.ts"]}
        (self._package / f"tsconfig.{name}.json").write_text(json.dumps(included))
        self.run("tsc", "--noEmit", "-p", f"tsconfig.{name}.json")
        return folder

    def program(self, name: str) -> list[str]:
        """Return the command that runs a program."""
        return [str(node_binary()), "--no-warnings", str(self._programs / name / "main.ts")]

    def run(self, name: str, *arguments: str) -> str:
        """Run a program of the packages, such as `tsc`, or `node`, in the package's folder; return its output."""
        program = [] if name == "node" else [str((self._modules / ".bin" / name).resolve())]
        return self._run([str(node_binary()), *program, *arguments])

    def _run(self, command: list[str], folder: Path | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=folder or self._package,
            env={**os.environ, "RESIDE_WIRE_VECTORS": str(_VECTORS)},
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)} failed: {done.stdout[-8000:]}{done.stderr[-2000:]}"
        return done.stdout


@asynccontextmanager
async def running(command: list[str], environment: Mapping[str, str]) -> AsyncIterator[httpx2.AsyncClient]:
    """Run a replica as a process while the block is open; yield a client at its address once it is ready."""
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    try:
        url = f"http://127.0.0.1:{environment['RESIDE_LISTEN_PORT']}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as http:

            async def ready() -> bool:
                assert process.returncode is None, f"the replica ended with {process.returncode}"
                try:
                    return (await http.get("/readyz")).is_success
                except httpx2.TransportError:
                    return False

            await eventually("the replica to be ready", ready)
            yield http
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
