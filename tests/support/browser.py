"""A headless Chromium, driven through its DevTools protocol: the Debian package chromium-headless-shell.

`make alltools` installs it. A missing browser fails the test.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
from asyncio import subprocess
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.eventually import eventually
from websockets.asyncio.client import ClientConnection, connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROGRAM: Final = "chromium-headless-shell"
_WITHIN_S: Final = 60.0
_OPTIONS: Final = (
    "--remote-debugging-port=0",
    "--no-sandbox",  # which needs another user than root; the page is ours
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
)


@dataclass
class Page:
    """One page of a running browser.

    Attributes:
        errors: messages of its console that are errors, its uncaught exceptions, and violations of its policy.
    """

    _connection: ClientConnection
    _session: str = ""
    errors: list[str] = field(default_factory=list)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _answers: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the protocol, and return its result."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        session = {"sessionId": self._session} if self._session else {}
        await self._connection.send(json.dumps({"id": number, "method": method, "params": params, **session}))
        async with asyncio.timeout(_WITHIN_S):
            found = await answer
        assert "error" not in found, f"{method} failed: {found['error']}"
        return dict(found["result"])

    async def open(self, url: str) -> None:
        """Open an address, and wait until the page is loaded."""
        await self._until_loaded("Page.navigate", url=url)

    async def leave(self, expression: str) -> None:
        """Evaluate an expression that leads to another page or loads this one again, and wait until it is loaded."""
        await self._until_loaded("Runtime.evaluate", expression=expression)

    async def _until_loaded(self, method: str, **params: Any) -> None:
        self._loaded.clear()
        await self.send(method, **params)
        async with asyncio.timeout(_WITHIN_S):
            await self._loaded.wait()

    async def run(self, expression: str) -> Any:
        """Evaluate an expression, wait for its promise if it is one, and return its value."""
        found = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, f"{expression} failed: {found['exceptionDetails']}"
        return found["result"].get("value")

    async def screenshot(self, path: Path, *, width: int, height: int, dark: bool = False) -> None:
        """Write a picture of the page at a size in CSS pixels, in the light or the dark scheme."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme, still])
        size = {"width": width, "height": height, "deviceScaleFactor": 1.5, "mobile": width < 600}
        await self.send("Emulation.setDeviceMetricsOverride", **size)
        await self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        taken = await self.send("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(taken["data"]))

    async def _read(self) -> None:
        async for frame in self._connection:
            message = json.loads(frame)
            if "id" in message:
                self._answers.pop(message["id"]).set_result(message)
            elif message["method"] == "Page.loadEventFired":
                self._loaded.set()
            elif message["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(message["params"]["exceptionDetails"]))
            elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.errors.append(str(message["params"]["entry"]["text"]))


@asynccontextmanager
async def browser_page(folder: Path) -> AsyncIterator[Page]:
    """Run a browser with an empty profile in a folder, and yield its page, while the block is open."""
    program = shutil.which(PROGRAM)
    assert program is not None, f"{PROGRAM} is missing: run `make alltools`"
    with (folder / "browser.log").open("wb") as log:
        options = (*_OPTIONS, f"--user-data-dir={folder / 'profile'}", "about:blank")
        process = await subprocess.create_subprocess_exec(
            program, *options, stdout=log, stderr=log, start_new_session=True
        )
    try:
        async with connect(await _address(folder), max_size=None) as connection:
            page = Page(connection)
            reading = asyncio.create_task(page._read())
            try:
                target = (await page.send("Target.createTarget", url="about:blank"))["targetId"]
                attached = await page.send("Target.attachToTarget", targetId=target, flatten=True)
                page._session = attached["sessionId"]
                for domain in ("Page", "Runtime", "Log"):
                    await page.send(f"{domain}.enable")
                yield page
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
    finally:
        # Debian's program is a script that does not pass signals on, so all processes of the session end
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await eventually("the end of the browser", lambda: not _processes(folder), within=_WITHIN_S)


def _processes(folder: Path) -> list[str]:
    """Return the ids of the processes that use the profile in a folder."""
    profile = f"--user-data-dir={folder / 'profile'}".encode()
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            if profile in command.read_bytes().split(b"\0"):
                found.append(command.parent.name)
    return found


async def _address(folder: Path) -> str:
    """Return the address of the DevTools protocol, which the browser writes into its log."""
    start = "DevTools listening on "

    def look() -> str | None:
        lines = (folder / "browser.log").read_text(errors="replace").splitlines()
        return next((line.removeprefix(start) for line in lines if line.startswith(start)), None)

    found = await eventually("the browser to listen", look, within=_WITHIN_S)
    assert found is not None
    return found
