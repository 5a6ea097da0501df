"""Runs `interop.strangers.attack` in a process of its own while a block is open."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reside.model import lookup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

_ROUND_WITHIN_S = 400.0
"""A round with 300 values takes 12 s of a core, of which the platform and other tests leave little."""
GUESSED = [
    *[make(number) for number in range(1, 9) for make in (lookup.replica_by_id, lookup.load_request_by_id)],
    *[lookup.rcb_by_id(number) for number in range(1, 9)],
    *[f"agent-secret.{number}" for number in range(1, 9)],
]
"""Names of unique maps that the platform will use, as anybody can guess them."""
_TESTS = Path(__file__).resolve().parents[2]


class Attack:
    """A running attack."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def is_running(self) -> bool:
        """Whether it still goes on."""
        return self._process.returncode is None

    async def round(self) -> dict[str, int]:
        """Wait for the end of the next round; return the number of messages and of closed connections so far."""
        assert self._process.stdout is not None
        async with asyncio.timeout(_ROUND_WITHIN_S):
            line = await self._process.stdout.readline()
        assert line, "the attack ended"
        return dict(json.loads(line))


@asynccontextmanager
async def attacking(
    url: str, *, values: Iterable[str], groups: Iterable[str], names: Iterable[str], folder: Path
) -> AsyncIterator[Attack]:
    """Attack while the block is open.

    Args:
        url: the sync server.
        values: ids of all values that strangers know.
        groups: ids of those of them that are groups or accounts.
        names: names of unique maps, which are attacked in each group.
        folder: a folder for the plan.
    """
    unique = [[group, name] for group in groups for name in names]
    path = folder / "plan.json"
    path.write_text(json.dumps({"url": url, "values": list(values), "groups": list(groups), "unique": unique}))
    process = await asyncio.create_subprocess_exec(
        # strangers do not take processor time from the platform, as they would on one busy machine
        "nice",
        "-n",
        "5",
        sys.executable,
        "-m",
        "interop.strangers.attack",
        str(path),
        cwd=_TESTS,
        env=os.environ | {"PYTHONPATH": str(_TESTS)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Attack(process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
