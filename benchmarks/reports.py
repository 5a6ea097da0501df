"""Measure how much Jazz's database grows by the reports of one crash-looping pod, in an hour of its restarts.

The kubelet restarts such a pod about twelve times an hour, with pauses of five minutes. Each restart changes the
Deployment's status and the pod's problem several times. The reporter and the sync server are the real ones; the API
server's objects are made up, and no pause is waited for.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]

from support.jazz_server import jazz_server  # noqa: E402 - needs the path above, as all that follow

from benchmarks.alpha import used_kib  # noqa: E402
from benchmarks.command import run  # noqa: E402
from reside.jazz import Credentials, Node  # noqa: E402
from reside.model.kinds import KINDS  # noqa: E402
from reside.model.stacks import DesiredStack  # noqa: E402
from reside.sentinel.guard.cache import ObjectCache  # noqa: E402
from reside.sentinel.guard.pods import PodCache  # noqa: E402
from reside.sentinel.guard.troubles import Troubles  # noqa: E402
from reside.sentinel.term import reports  # noqa: E402
from reside.sentinel.term.reporter import Reporter  # noqa: E402

NAME, WORKLOAD = "worker", "worker-1"
ERASED_WITHIN_S = 4.0


class Crashing:
    """A term whose one stack has a Deployment with a crash-looping pod."""

    def __init__(self, node: Node) -> None:
        readers = node.create_group()
        self.node, self.replica = node, SimpleNamespace(node=node)
        live = {kind.kind: node.create_group() for kind in KINDS}
        self.data = SimpleNamespace(reports=readers.create_map(), readers=readers, live=live)
        self.guard = SimpleNamespace(
            cache=ObjectCache(),
            pods=PodCache(),
            troubles=Troubles(),
            store=SimpleNamespace(stacks={}, holder=lambda _key: None),
            repairer=SimpleNamespace(
                problems={},
                findings_of=lambda _key: (),
                reverted_of=lambda _key: (),
                listen=lambda _listener: lambda: None,
            ),
        )
        term: Any = self  # it has the parts that a reporter uses
        self.reporter = Reporter(term)
        setattr(reports, "LIVE_S", 0.0)  # noqa: B010 - a constant of the product
        self.reporter.set_desired(DesiredStack(NAME, "co_zOwner", (self._deployment({}),)))

    def _deployment(self, status: dict[str, Any]) -> dict[str, Any]:
        container: dict[str, Any] = {
            "name": "main",
            "image": f"registry.reside.internal/examples/worker@sha256:{'ab' * 32}",
        }
        container |= {"env": [{"name": f"RESIDE_{n}", "value": "v" * 40} for n in range(14)]}
        meta = {"name": WORKLOAD, "labels": {"reside.io/replica": NAME, "reside.io/version": "1"}, "generation": 1}
        spec = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec, "status": status}

    async def restart(self, number: int) -> None:
        """Let the pod start, become ready, fail and wait."""
        for ready, problem in ((0, None), (1, None), (0, "exit code 1"), (0, "CrashLoopBackOff: exit code 1")):
            condition = {
                "type": "Available",
                "status": str(bool(ready)),
                "lastUpdateTime": f"{number} {ready} {problem}",
            }
            status = {"observedGeneration": 1, "replicas": 1, "readyReplicas": ready, "conditions": [condition]}
            self.guard.cache.note("MODIFIED", self._deployment(status))
            self.guard.pods.problem = lambda _key, problem=problem: problem
            await self.reporter._write(NAME)
            await self.node.flush()


async def measure(restarts: int) -> None:
    """Print the growth."""
    with jazz_server(MODE="members", ERASE_S="1") as server:
        async with Node(server.url, Credentials.generate()) as node:
            await node.register("sentinel")
            term = Crashing(node)
            await term.restart(0)
            before, highest = used_kib(server.folder), 0.0
            for number in range(1, restarts + 1):
                await term.restart(number)
                highest = max(highest, used_kib(server.folder))
            await asyncio.sleep(ERASED_WITHIN_S)
            after = used_kib(server.folder)
    print(f"{restarts} restarts of a pod, four changes each: {after - before:.0f} KiB (target: below 1,024)")
    print(f"  at most {highest - before:.0f} KiB before deleted reports were erased")


if __name__ == "__main__":
    run(measure, __doc__, restarts=12)
