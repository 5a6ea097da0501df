"""Compare a stack change by the Sentinel's engine with `pulumi up` and with `kubectl apply --server-side`.

The benchmark starts a control plane and applies the same five objects (ConfigMap, Secret, ServiceAccount, Service,
Deployment) in three ways, each in a namespace of its own: the engine adapter with its warm workers; a plain `pulumi up`
of an equal Python program through the language host; kubectl. Rounds are interleaved, so that the machine's load
affects all ways equally. Ratios are of medians. It needs only the toolchain (`make tools`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reside.local import ClusterInfo, LocalCluster
from reside.local.toolchain import default_search
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.sentinel.engine import EngineSettings, PulumiEngine, StackSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable

ROOT = Path(__file__).resolve().parent.parent
WAYS = ("kubectl apply --server-side", "bare pulumi up", "engine")
PROGRAM = """\
import json

from benchmarks.sdk_program import sdk_program
from reside.sentinel.engine.resources import ProviderSettings

with open("objects.json") as stream:
    sdk_program(json.load(stream), ProviderSettings("4.25.0", "cli"))()
"""
Times = dict[tuple[str, str], list[float]]


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    os.environ["PATH"] = default_search()
    with tempfile.TemporaryDirectory(prefix="reside-bench-") as folder:
        cluster = LocalCluster("bench-apply", Path(folder) / "cluster", control_plane_only=True)
        try:
            times = asyncio.run(_measure(cluster.up(), Path(folder), rounds))
        finally:
            cluster.down(delete_state=True)
    _print(times)


async def _measure(info: ClusterInfo, folder: Path, rounds: int) -> Times:
    kubectl = Kubectl(info)
    for namespace in ("engine", "cli", "kubectl"):
        kubectl.run("create", "namespace", namespace)
    cli = BareCli(info, folder / "cli")
    engine = PulumiEngine(EngineSettings(folder / "engine", "bench", "engine", info.kubeconfig, info.context))
    times: Times = defaultdict(list)
    try:
        for number in range(rounds + 1):
            for operation, value in (("create" if number == 0 else "change", number), ("no change", number)):
                objects = _objects(value)
                times[operation, WAYS[0]].append(await _clocked(asyncio.to_thread(kubectl.apply, objects)))
                times[operation, WAYS[1]].append(await _clocked(asyncio.to_thread(cli.up, objects)))
                times[operation, WAYS[2]].append(await _clocked(engine.apply(StackSpec("bench", objects))))
                preview = engine.preview(StackSpec("bench", _objects(value + 1)))
                times["preview of a change", WAYS[2]].append(await _clocked(preview))
    finally:
        await engine.stop()
    return times


async def _clocked(work: Awaitable[Any]) -> float:
    """Return the seconds that `work` takes."""
    began = time.monotonic()
    await work
    return time.monotonic() - began


class Kubectl:
    """kubectl, the peer of the comparison."""

    def __init__(self, info: ClusterInfo) -> None:
        """Use this cluster."""
        self._command = ["kubectl", "--kubeconfig", str(info.kubeconfig), "--context", info.context]

    def run(self, *arguments: str, stdin: str | None = None) -> None:
        """Run kubectl and wait until it ends."""
        subprocess.run([*self._command, *arguments], input=stdin, check=True, capture_output=True, text=True)

    def apply(self, objects: tuple[dict[str, Any], ...]) -> None:
        """Apply the objects in the namespace `kubectl`."""
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        command = ["apply", "--server-side", "--field-manager", FIELD_MANAGER, "-n", "kubectl", "-f", "-"]
        self.run(*command, stdin=document)


class BareCli:
    """A `pulumi up` of an equal stack, as a user would run it: a Python program through the language host."""

    def __init__(self, info: ClusterInfo, folder: Path) -> None:
        """Create the project and the stack in `folder`."""
        self._folder = folder / "project"
        self._folder.mkdir(parents=True)
        (folder / "state").mkdir()
        options = {"name": "python", "options": {"virtualenv": sys.prefix}}
        (self._folder / "Pulumi.yaml").write_text(json.dumps({"name": "bench", "runtime": options}), encoding="utf-8")
        (self._folder / "__main__.py").write_text(PROGRAM, encoding="utf-8")
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KUBECONFIG": str(info.kubeconfig),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "bench",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }
        self._pulumi("stack", "init", "bench")

    def up(self, objects: tuple[dict[str, Any], ...]) -> None:
        """Apply the objects in the namespace `cli`."""
        (self._folder / "objects.json").write_text(json.dumps(objects), encoding="utf-8")
        self._pulumi("up", "--yes", "--skip-preview", "--stack", "bench")

    def _pulumi(self, *arguments: str) -> None:
        command = ["pulumi", "--non-interactive", "--color", "never", *arguments]
        subprocess.run(command, cwd=self._folder, env=self._environment, check=True, capture_output=True)


def _objects(value: int) -> tuple[dict[str, Any], ...]:
    """Return a replica's usual five objects; the ConfigMap contains `value`."""
    meta = {"name": "bench", "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}}
    labels = {"app": "bench"}
    pod = {"containers": [{"name": "main", "image": "example.internal/bench@sha256:" + "0" * 64}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": str(value)}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": "dmFsdWU="}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        },
    )


def _print(times: Times) -> None:
    head = f"{'5 objects':22}{'way':30}{'runs':>5}{'median s':>10}{'min s':>8}{'max s':>8}"
    print(f"{head}{'to CLI':>8}{'to kubectl':>12}")
    for operation in ("create", "change", "no change", "preview of a change"):
        for way in WAYS:
            runs = times.get((operation, way))
            if runs:
                middle = statistics.median(runs)
                ratios = "".join(
                    f"{_ratio(middle, times.get((operation, peer))):>{width}}"
                    for peer, width in ((WAYS[1], 8), (WAYS[0], 12))
                )
                print(f"{operation:22}{way:30}{len(runs):5}{middle:10.2f}{min(runs):8.2f}{max(runs):8.2f}{ratios}")


def _ratio(middle: float, peer: list[float] | None) -> str:
    return f"{middle / statistics.median(peer):.2f}" if peer else "-"


if __name__ == "__main__":
    main()
