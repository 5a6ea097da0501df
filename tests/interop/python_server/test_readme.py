"""The programs of the README of the distribution `reside-jazz` run as it says."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.jazz_python_server import PythonJazzServer

pytestmark = pytest.mark.anyio

_README = (Path(__file__).parents[3] / "reside" / "jazz" / "README.md").read_text()
_PROGRAMS = re.findall(r"^```python\n(.*?)^```$", _README, re.MULTILINE | re.DOTALL)
_PRINTED = re.findall(r"^It prints:\n\n```\n(.*?)^```$", _README, re.MULTILINE | re.DOTALL)
_ADDRESS = "ws://127.0.0.1:4200"


async def test_the_first_program_prints_what_the_readme_says(jazz: PythonJazzServer) -> None:
    program, _ = _PROGRAMS
    assert _ADDRESS in program
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program.replace(_ADDRESS, jazz.url), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert [out.decode()] == _PRINTED


async def test_the_server_of_the_second_program_serves() -> None:
    first, second = _PROGRAMS
    session: dict[str, Any] = {}
    source = first.partition("\n\n")[0] + "\n" + second  # with the imports of the first
    compiled = compile(source, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    await eval(compiled, session)  # noqa: S307 - the page's own code
    assert session["node"].account_id
