"""What both parts of the engine's benchmark share: kubectl, a stack's objects, the measurements."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from benchmarks.engine_pair import Pair
    from reside.local import ClusterInfo

    Clock = Callable[[str, str], AbstractContextManager[None]]

WAYS = ("stock", "resident", "sentinel", "alone", "kubectl")


@dataclass(frozen=True)
class Taken:
    """The wall-clock and CPU seconds of one operation."""

    seconds: float
    cpu: float


@dataclass
class Ledger:
    """The measurements: (operation, way) → its runs."""

    runs: dict[tuple[str, str], list[Taken]] = field(default_factory=lambda: defaultdict(list))

    def clock(self, pair: Pair) -> Clock:
        """Return a context manager that takes an operation and a way, and records the time of its block."""

        @contextmanager
        def measured(operation: str, way: str) -> Iterator[None]:
            used = _commands if way in ("stock", "kubectl") else pair.cpu
            others, own = used(), time.process_time()
            began = time.monotonic()
            yield
            seconds = time.monotonic() - began
            cpu = time.process_time() - own + used() - others
            self.runs[operation, way].append(Taken(seconds, cpu))

        return measured

    def median(self, operation: str, way: str) -> float:
        """Return the median seconds."""
        return statistics.median(run.seconds for run in self.runs[operation, way])

    def ratio(self, operation: str, way: str, peer: str) -> float:
        """Return the ratio of the medians of two ways."""
        return self.median(operation, way) / self.median(operation, peer)

    def print(self) -> None:
        """Print the table."""
        print(f"{'operation':38}{'way':10}{'runs':>5}{'median s':>10}{'min s':>9}{'CPU s':>8}{'to stock':>10}", end="")
        print(f"{'to kubectl':>12}")
        for operation in dict.fromkeys(operation for operation, _ in self.runs):
            for way in WAYS:
                if (operation, way) in self.runs:
                    self._print(operation, way)

    def _print(self, operation: str, way: str) -> None:
        runs = self.runs[operation, way]
        cpu = statistics.median(run.cpu for run in runs)
        ratios = [
            f"{self.ratio(operation, way, peer):.2f}" if (operation, peer) in self.runs else "-"
            for peer in ("stock", "kubectl")
        ]
        line = f"{operation:38}{way:10}{len(runs):5}{self.median(operation, way):10.3f}"
        print(f"{line}{min(run.seconds for run in runs):9.3f}{cpu:8.3f}{ratios[0]:>10}{ratios[1]:>12}")


def _commands() -> float:
    """Return the CPU seconds of commands that ended, and of engines that ended, over their complete run: see `Pair`."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


class Kubectl:
    """kubectl, the peer of the comparison."""

    def __init__(self, info: ClusterInfo) -> None:
        """Use this cluster."""
        self._command = ["kubectl", "--kubeconfig", str(info.kubeconfig), "--context", info.context]

    def run(self, *arguments: str, stdin: str | None = None) -> None:
        """Run kubectl and wait until it ends."""
        subprocess.run([*self._command, *arguments], input=stdin, check=True, capture_output=True, text=True)

    def apply(self, namespace: str, items: list[dict[str, Any]], *flags: str) -> None:
        """Apply the objects as one file."""
        self.file(["apply", "--server-side", "--field-manager", FIELD_MANAGER, *flags], namespace, items)

    def delete(self, namespace: str, items: list[dict[str, Any]]) -> None:
        """Delete the objects with background propagation, as the stacks do."""
        self.file(["delete", "--cascade=background", "--wait=false"], namespace, items)

    def file(self, command: list[str], namespace: str, items: list[dict[str, Any]]) -> None:
        """Run a kubectl command on objects of a namespace."""
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        self.run(*command, "-n", namespace, "-f", "-", stdin=document)


def objects(number: int, value: str) -> tuple[dict[str, Any], ...]:
    """Return a replica's usual five objects; the ConfigMap contains `value`."""
    name = f"bench-{number}"
    meta = {"name": name, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}}
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "example.internal/bench@sha256:" + "0" * 64}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    headless = {"clusterIP": "None", "selector": labels, "ports": [{"port": 80, "protocol": "TCP"}]}
    scale = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": "dmFsdWU="}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": headless,
        },
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": scale},
    )
