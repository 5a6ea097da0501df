"""Compare reside.jazz with the official JavaScript client (cojson 0.20.19 with its N-API crypto).

Both sides run the same operations (jazz_peer.py, jazz_peer.mjs), each in two processes of its own, with one sync server
on loopback that the benchmark starts. Rounds are interleaved, so that the machine's load affects both sides equally.
Numbers are medians of the rounds; the ratio is the speed of Python divided by that of JavaScript. The last column is
the same ratio for the CPU time of both processes of a side, including preparation and flush of a run; other load on the
machine affects it less. The first run needs npm. The toolchain is not needed.

Node is the official release. A Python that was built without profile-guided optimisation, as pyenv builds it, is about
a tenth slower than a distribution's: `--python` takes the interpreter of another virtual environment with this project.
It can be given several times; there is one table for each. With `--gate`, the sync server runs in members mode; what
that costs the server itself is printed by jazz_gate.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from support.jazz_server import jazz_packages, jazz_server, node_binary  # noqa: E402 - needs the path above

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

LANGUAGES = ("JavaScript", "Python")
MAX_LINE_BYTES = 64 * 1024 * 1024
LATENCY_TARGET, THROUGHPUT_TARGET = 1.0, 0.8
Times = dict[str, dict[str, list[tuple[float, float]]]]
"""Row → language → runs: (seconds, seconds of CPU time)."""


class PeerError(Exception):
    """A peer process failed, or could not carry out an operation."""


class Peer:
    """A peer process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Use this process."""
        self._process = process
        self.cpu = 0.0

    async def __call__(self, op: str, **args: Any) -> Any:
        """Run one operation."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise PeerError("a peer process has no pipes")
        stdin.write(json.dumps({"op": op, "args": args}).encode() + b"\n")
        line = await stdout.readline()
        if not line:
            raise PeerError(f"a peer process ended with {await self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{op}: {answer['error']}")
        self.cpu += answer["cpu"]
        return answer["result"]


@dataclass(frozen=True)
class Side:
    """Two accounts of one language, and the values that both languages read.

    Attributes:
        big: id of a map of `LOG` transactions, created by the JavaScript side.
        many: ids of `MAPS` maps, created by the JavaScript side.
        file: id of a file of `FILE_MIB`, created by the JavaScript side.
    """

    a: Peer
    b: Peer
    big: str
    many: list[str]
    file: str


WRITES, MAPS, GROUPS, PINGS, LOG, FILE_MIB = 1000, 500, 100, 200, 2001, 20


async def _latencies(side: Side) -> list[float]:
    shared = await side.a("share")
    await side.b("echo", id=shared)
    there = await side.a("ping", id=shared, count=PINGS)
    return [*there, *await side.b("echoed")]


async def _latency(side: Side, percent: int) -> float:
    return statistics.quantiles(await _latencies(side), n=100, method="inclusive")[percent - 1]


async def _stream(side: Side, count: int) -> float:
    shared = await side.a("share")
    await side.b("load", id=shared)
    ended, began = await asyncio.gather(
        side.b("until_key", id=shared, key=f"key{count - 1}"), side.a("stream", id=shared, count=count)
    )
    return float(ended) - float(began)


def _write(privacy: str, *, turns: bool) -> Callable[[Side], Awaitable[float]]:
    return lambda side: side.a("write", count=WRITES, privacy=privacy, turns=turns)


async def _create_maps(side: Side, *, upload: bool) -> float:
    return float((await side.a("create_maps", count=MAPS, upload=upload))["took"])


def _write_file(mib: int, result: str) -> Callable[[Side], Awaitable[float]]:
    async def run(side: Side) -> float:
        return float((await side.a("write_file", mib=mib))[result])

    return run


def _read_file(result: str) -> Callable[[Side], Awaitable[float]]:
    async def run(side: Side) -> float:
        return float((await side.a("read_file", id=side.file, mib=FILE_MIB))[result])

    return run


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        count: number of operations in one run; None for a latency.
        run: executes one run and returns its seconds.
    """

    name: str
    count: int | None
    run: Callable[[Side], Awaitable[float]]


async def _import(side: Side) -> float:
    return float(await side.a("import_time"))


ROWS = {
    "import": Row("import of the package", None, _import),
    "private": Row("local private writes, one turn", WRITES, _write("private", turns=False)),
    "private-turns": Row("local private writes, a turn each", WRITES, _write("private", turns=True)),
    "trusting": Row("local trusting writes, one turn", WRITES, _write("trusting", turns=False)),
    "maps": Row("create maps", MAPS, lambda side: _create_maps(side, upload=False)),
    "groups": Row("create groups", GROUPS, lambda side: side.a("create_groups", count=GROUPS)),
    "p50": Row("latency client-server-client p50", None, lambda side: _latency(side, 50)),
    "p95": Row("latency client-server-client p95", None, lambda side: _latency(side, 95)),
    "stream": Row("stream 2,000 writes to another", 2000, lambda side: _stream(side, 2000)),
    "cold": Row("cold load of 2,001 transactions", LOG, lambda side: side.a("load_whole", id=side.big, count=LOG)),
    "upload": Row("create and upload 500 maps", MAPS, lambda side: _create_maps(side, upload=True)),
    "file-up": Row(f"upload a file of {FILE_MIB} MiB, in MiB", FILE_MIB, _write_file(FILE_MIB, "took")),
    "file-up-5": Row(f"upload a file of {5 * FILE_MIB} MiB, in MiB", 5 * FILE_MIB, _write_file(5 * FILE_MIB, "took")),
    "file-up-held": Row("upload: event loop held at most", None, _write_file(FILE_MIB, "held")),
    "file-down": Row(f"load a file of {FILE_MIB} MiB, in MiB", FILE_MIB, _read_file("took")),
    "file-down-held": Row("load a file: event loop held at most", None, _read_file("held")),
    "load": Row("load 500 maps in parallel", MAPS, lambda side: side.a("load_maps", ids=side.many)),
}


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds; one more warms up")
    parser.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--json", action="store_true", help="print all times (seconds) as JSON")
    parser.add_argument("--python", action="append", help="interpreter of the Python side; default: this one")
    parser.add_argument("--gate", action="store_true", help="run the sync server in members mode")
    arguments = parser.parse_args()
    rows = [name for name in ROWS if not arguments.only or name in arguments.only]
    for python in arguments.python or [sys.executable]:
        path = str(Path(python).absolute())  # not resolved: a link in a virtual environment finds its packages
        mode = "members" if arguments.gate else "open"
        times = asyncio.run(_measure(rows, arguments.rounds, path, mode))
        if arguments.json:
            print(json.dumps(times))
        else:
            print(f"{_build(path)}; sync server in {mode} mode")
            _print(times)


def _build(python: str) -> str:
    """Return the version and the real path of an interpreter: Python does not say how it was optimised."""
    program = "import platform, sys; print(platform.python_version(), sys._base_executable)"
    version, _, path = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True
    ).stdout.partition(" ")
    return f"Python {version} ({path.strip()})"


async def _measure(rows: list[str], rounds: int, python: str, mode: str) -> Times:
    times: Times = {row: defaultdict(list) for row in rows}
    with jazz_server(MODE=mode) as server:
        async with AsyncExitStack() as stack:
            peers = {
                language: [await stack.enter_async_context(peer_process(language, python)) for _ in range(2)]
                for language in LANGUAGES
            }
            for peer in [peer for pair in peers.values() for peer in pair]:
                await peer("register", url=server.url)
            source = peers["JavaScript"][0]
            big, many = await source("fill", count=LOG), (await source("create_maps", count=MAPS, upload=True))["ids"]
            file = (await source("write_file", mib=FILE_MIB))["id"]
            for number in range(rounds + 1):
                for row in rows:
                    for language in LANGUAGES if number % 2 else reversed(LANGUAGES):
                        for peer in peers[language]:
                            await peer("fresh")
                        run = await _run(ROWS[row], Side(peers[language][0], peers[language][1], big, many, file))
                        if number > 0:
                            times[row][language].append(run)
    return times


async def _run(row: Row, side: Side) -> tuple[float, float]:
    before = side.a.cpu + side.b.cpu
    seconds = await row.run(side)
    return seconds, side.a.cpu + side.b.cpu - before


@asynccontextmanager
async def peer_process(language: str, python: str) -> AsyncIterator[Peer]:
    """Yield a peer process of a language, with this interpreter if it is Python."""
    folder = Path(tempfile.mkdtemp(prefix="reside-bench-"))
    command: list[str | Path] = [python, HERE / "jazz_peer.py"]
    if language == "JavaScript":
        shutil.copy(HERE / "jazz_peer.mjs", folder)
        (folder / "node_modules").symlink_to(jazz_packages() / "node_modules")
        command = [node_binary(), "--expose-gc", "jazz_peer.mjs"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdin=pipe, stdout=pipe, limit=MAX_LINE_BYTES)
    try:
        yield Peer(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        shutil.rmtree(folder)


def _print(times: Times) -> None:
    print(f"{'':36}{'JavaScript':>14}{'Python':>14}{'ratio':>8}{'target':>8}{'CPU ratio':>11}")
    for name, runs in times.items():
        row = ROWS[name]
        (js, js_cpu), (own, own_cpu) = (map(statistics.median, zip(*runs[side], strict=True)) for side in LANGUAGES)
        ratio, target = js / own, LATENCY_TARGET if row.count is None else THROUGHPUT_TARGET
        cells = "".join(f"{_shown(row, seconds):>14}" for seconds in (js, own))
        verdict = "" if ratio >= target else "  below"
        print(f"{row.name:36}{cells}{ratio:8.2f}{target:8.1f}{js_cpu / own_cpu:11.2f}{verdict}")


def _shown(row: Row, seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if row.count is None else f"{row.count / seconds:,.0f} /s"


if __name__ == "__main__":
    main()
