"""The Python examples of docs/jazz.md run from top to bottom with a real server, and type-check."""

import ast
import asyncio
import re
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest
from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[3] / "docs" / "jazz.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WHOLE_PROGRAM = "asyncio.run("


def _blocks(url: str) -> list[tuple[int, str]]:
    """Return the page's code blocks with their line numbers; they use the test's server."""
    page = PAGE.read_text()
    found = [(page[: block.start(1)].count("\n"), block.group(1)) for block in _BLOCK.finditer(page)]
    return [(line, code.replace("ws://127.0.0.1:4200", url)) for line, code in found]


async def _run(line: int, code: str, session: dict[str, Any]) -> None:
    source = "\n" * line + code  # so that a traceback names the page's line
    compiled = compile(source, PAGE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, session)  # noqa: S307 - the page's own code
    if result is not None:
        await result


async def test_the_examples_run_in_order(jazz: JazzServer, monkeypatch: pytest.MonkeyPatch) -> None:
    session = types.ModuleType("jazz_page")
    monkeypatch.setitem(sys.modules, "jazz_page", session)  # annotations of classes are read in their module
    vars(session)["asyncio"] = asyncio
    blocks = [block for block in _blocks(jazz.url) if _WHOLE_PROGRAM not in block[1]]
    assert len(blocks) > 15
    for line, code in blocks:
        await _run(line, code, vars(session))


async def test_the_first_program_runs_unchanged(jazz: JazzServer) -> None:
    (program,) = [code for _, code in _blocks(jazz.url) if _WHOLE_PROGRAM in code]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert re.fullmatch(rb"co_z\w+ hello\n", out)


async def test_the_examples_type_check_strictly(tmp_path: Path) -> None:
    """The code is put into a coroutine function, because a module can't contain `await`."""
    body = "\n".join(code for _, code in _blocks("ws://server") if _WHOLE_PROGRAM not in code)
    page = tmp_path / "page.py"
    page.write_text("import asyncio\nasync def page() -> None:\n" + textwrap.indent(body, "    "))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(PAGE.parents[1] / ".mypy_cache"), str(page)),
        cwd=PAGE.parents[1],
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
