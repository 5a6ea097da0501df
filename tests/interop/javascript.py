"""The official JavaScript packages as a child process, driven by a script of `tests/interop/js`."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.jazz_server import interop_packages, node_binary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SCRIPTS = Path(__file__).parent / "js"
_ANSWER_WITHIN_S = 60.0
_MAX_LINE_BYTES = 64 * 1024 * 1024


class JavaScriptError(Exception):
    """The JavaScript side threw an error."""


class JavaScript:
    """One Node process with the official packages; it may hold several actors."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._next = 1

    async def __call__(self, op: str, **args: Any) -> Any:
        """Run one operation of the driver, and return its result.

        Raises:
            JavaScriptError: the operation threw an error.
        """
        number, self._next = self._next, self._next + 1
        stdin = self._process.stdin
        if stdin is None:
            raise JavaScriptError("the driver has no stdin")
        stdin.write(json.dumps({"id": number, "op": op, "args": args}).encode() + b"\n")
        answer = await self.answer()
        if answer["id"] != number:
            raise JavaScriptError(f"the driver answered {answer['id']} to request {number}")
        if "error" in answer:
            raise JavaScriptError(answer["error"])
        return answer["result"]

    async def answer(self) -> Any:
        """Return the next line of the driver."""
        stdout = self._process.stdout
        if stdout is None:
            raise JavaScriptError("the driver has no stdout")
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            line = await stdout.readline()
        if not line:
            raise JavaScriptError(f"the driver ended with {await self._process.wait()}")
        return json.loads(line)


@asynccontextmanager
async def javascript(script: str = "driver.mjs") -> AsyncIterator[JavaScript]:
    """Yield a driver process, which handles requests in order.

    Args:
        script: `driver.mjs` drives cojson, `tools.mjs` jazz-tools, `typed.mjs` its schemas.
    """
    folder = Path(tempfile.mkdtemp(prefix="reside-jazz-js-"))
    for source in _SCRIPTS.glob("*.mjs"):
        shutil.copy(source, folder / source.name)
    (folder / "node_modules").symlink_to(interop_packages() / "node_modules")
    process = await asyncio.create_subprocess_exec(
        node_binary(),
        script,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
    )
    try:
        driver = JavaScript(process)
        await driver.answer()
        yield driver
    finally:
        process.kill()
        await process.wait()
        shutil.rmtree(folder)
