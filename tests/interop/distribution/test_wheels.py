"""The distribution reside-jazz, alone in a fresh environment; test_release.py has both."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.jazz_server import interop_packages, node_binary

from reside.build.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
CHAT = ROOT / "examples" / "chat"
MIB = 1 << 20
WITHIN_S = 180


def uv(*arguments: str | Path) -> str:
    """Run uv in the checkout and return its output."""
    binary = shutil.which("uv") or cache_folder() / "uv/bin/uv"
    done = subprocess.run([binary, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(project: str, folder: Path) -> Path:
    """Build the wheel of a project of the checkout."""
    uv("build", "--quiet", "--wheel", "--out-dir", folder, project)
    (wheel,) = folder.glob("*.whl")
    return wheel


def folders(wheel: Path) -> set[str]:
    """Return the names at the top of a wheel, and inside of `reside`."""
    with zipfile.ZipFile(wheel) as archive:
        parts = [name.split("/") for name in archive.namelist()]
    return {"/".join(part[:2]) if part[0] == "reside" else part[0].partition("-")[0] for part in parts}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("reside/jazz", tmp_path_factory.mktemp("jazz"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with reside-jazz without extras, in the locked versions."""
    folder = tmp_path_factory.mktemp("environment")
    versions = folder / "versions.txt"
    versions.write_text(uv("export", "--frozen", "--no-dev", "--no-emit-workspace", "--no-hashes", "--no-header"))
    uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
    interpreter = folder / "venv/bin/python"
    uv("pip", "install", "--quiet", "--python", interpreter, "--constraint", versions, wheel)
    return interpreter


async def run(python: Path, program: str) -> tuple[int | None, str, str]:
    """Run a program in the fresh environment, outside of the checkout."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        python, "-I", "-c", program, cwd=python.parent, stdout=pipe, stderr=pipe
    )
    out, error = await process.communicate()
    return process.returncode, out.decode(), error.decode()


def test_the_wheel_of_reside_jazz_contains_one_package(wheel: Path) -> None:
    assert folders(wheel) == {"reside/jazz", "reside_jazz"}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    assert names > {"reside/jazz/py.typed", "reside/jazz/__init__.py", "reside/jazz/typed/__init__.py"}
    required = {line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Requires-Dist")}
    assert {line.partition(">")[0] for line in required if "extra" not in line} == {
        "blake3",
        "orjson",
        "pynacl",
        "websockets",
    }


async def test_an_import_loads_neither_pydantic_nor_much_memory(python: Path) -> None:
    program = """
import asyncio, sys
size = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
before = size()
import reside.jazz
print(size() - before, *(name in sys.modules for name in ("pydantic", "regex")))
"""
    code, out, error = await run(python, program)
    assert code == 0, error
    growth, *loaded = out.split()
    assert int(growth) < 20 * MIB
    assert loaded == ["False", "False"]


@pytest.mark.parametrize(
    ("program", "cure"),
    [
        ("import reside.jazz.typed", "needs pydantic: pip install 'reside-jazz[typed]'"),
        ("import reside.jazz; reside.jazz.new_passphrase()", "need mnemonic: pip install 'reside-jazz[passphrase]'"),
        ("from reside.jazz.values.text import graphemes; graphemes(chr(228))", "need regex: pip install"),
    ],
)
async def test_a_missing_extra_is_named(python: Path, program: str, cure: str) -> None:
    code, _, error = await run(python, program)
    assert code == 1
    assert cure in error


@asynccontextmanager
async def member(*command: str | Path, url: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a member of the chat."""
    pipe = asyncio.subprocess.PIPE
    environment = {"PATH": os.environ["PATH"], "JAZZ": url}
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment, stdin=pipe, stdout=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line_of(process: asyncio.subprocess.Process) -> str:
    """Return the next line that a member prints."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def test_two_actors_of_python_chat_with_one_of_javascript(python: Path, jazz: JazzServer, tmp_path: Path) -> None:
    shutil.copytree(CHAT, tmp_path, dirs_exist_ok=True)
    (tmp_path / "node_modules").symlink_to(interop_packages() / "node_modules")
    here = {"url": jazz.url, "folder": tmp_path}
    async with asyncio.timeout(WITHIN_S), member(python, "chat.py", "ann", **here) as ann:
        chat = await line_of(ann)
        async with (
            member(python, "chat.py", "bob", chat, **here) as bob,
            member(node_binary(), "chat.mjs", "cid", chat, **here) as cid,
        ):
            members = {"ann": ann, "bob": bob, "cid": cid}
            for name, process in members.items():
                assert process.stdin is not None
                process.stdin.write(f"hello from {name}\n".encode())
            for name, process in members.items():
                said = {await line_of(process), await line_of(process)}
                assert said == {f"{other}: hello from {other}" for other in members if other != name}
            for process in members.values():
                assert process.stdin is not None
                process.stdin.close()
                assert await process.wait() == 0
