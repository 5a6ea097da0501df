"""Measure `reside dev` from the save of a file to the new version that answers, and each of its steps.

It needs a running ReSide (`make up`) and a machine that does nothing else. It makes a replica from the template of
`reside new`, once as it is and once not scalable, so that each version waits for the end of the one before. Each round
changes a line of its code; both replicas are deleted at the end. The last column compares the median with the time from
`kubectl apply` of a Deployment with the same pod to its readiness.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reside.cli import config
from reside.cli.new import Kind, make, parse_names
from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import ResideError

if TYPE_CHECKING:
    from collections.abc import Iterator

RESIDE = str(Path(sys.executable).with_name("reside"))
RUNNING = re.compile(r"version (\d+) is running after [0-9.]+ s \((.*)\)$")
PEER = "dev-peer"
CALM_S = 6.0
"""Seconds between two rounds, in which the version before stops."""


def main() -> None:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    known = config.load()
    cluster = known.cluster(known.context().cluster)
    kubectl = ["kubectl", "--namespace", str(cluster.namespace)]
    kubectl += ["--kubeconfig", cluster.kubeconfig] if cluster.kubeconfig else []
    kubectl += ["--context", cluster.kube_context] if cluster.kube_context else []
    print(f"{'':34}{'median s':>10}{'min s':>10}{'max s':>10}{'ratio':>8}")
    for name in ("dev-scalable", "dev-single"):
        with tempfile.TemporaryDirectory() as scratch:
            measure(Path(scratch) / name, rounds, kubectl)


def measure(folder: Path, rounds: int, kubectl: list[str]) -> None:
    """Make a replica, measure it, print its rows, and delete it."""
    make(folder, Kind.replica, parse_names(folder.name, f"{RESIDE_REGISTRY}/dev"))
    if folder.name == "dev-single":
        manifest = folder / "replica.yaml"
        manifest.write_text(manifest.read_text().replace("scalable: true", "scalable: false"))
    code = (folder / "main.py").read_text()
    totals: list[float] = []
    steps: dict[str, list[float]] = {}
    try:
        command = [
            "env",
            "--default-signal=INT",
            RESIDE,
            "dev",
            str(folder),
            "--approve",
        ]  # a background job ignores it
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            found = versions(process)
            version, _ = next(found)
            for number in range(rounds):
                time.sleep(CALM_S)
                began = time.monotonic()
                (folder / "main.py").write_text(f"{code}\n# {number}\n")
                version, parts = next(found)
                totals.append(time.monotonic() - began)
                for step, seconds in parts.items():
                    steps.setdefault(step, []).append(seconds)
            process.send_signal(signal.SIGINT)
        peer = [apply(kubectl, f"deployment/{folder.name}-{version}") for _ in range(rounds)]
    finally:
        subprocess.run([RESIDE, "replica", "delete", folder.name, "--auto-approve"], check=False, capture_output=True)
    show(f"{folder.name}: kubectl apply", peer, peer)
    show(f"{folder.name}: save to running", totals, peer)
    for step, each in steps.items():
        show(f"  {step}", each, peer)


def versions(process: subprocess.Popen[str]) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield each version that runs, and the seconds of its steps.

    Raises:
        ResideError: the command ended.
    """
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("error:"):
            break
        if found := RUNNING.search(line.rstrip()):
            parts = (part.removesuffix(" s").rsplit(" ", 1) for part in found[2].split(", "))
            yield int(found[1]), {step: float(seconds) for step, seconds in parts}
    raise ResideError(f"reside dev ended: {''.join(said[-5:])}")


def apply(kubectl: list[str], deployment: str) -> float:
    """Apply a Deployment with the pod of another one under its own labels; return the seconds until it is ready."""
    found = subprocess.run([*kubectl, "get", deployment, "--output", "json"], check=True, capture_output=True)
    spec = json.loads(found.stdout)["spec"]
    labels = {"app": PEER}
    template = {"metadata": {"labels": labels}, "spec": spec["template"]["spec"]}
    same = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": PEER},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    began = time.monotonic()
    subprocess.run([*kubectl, "apply", "-f", "-"], input=json.dumps(same).encode(), check=True, capture_output=True)
    subprocess.run([*kubectl, "rollout", "status", f"deployment/{PEER}"], check=True, capture_output=True)
    seconds = time.monotonic() - began
    subprocess.run([*kubectl, "delete", f"deployment/{PEER}", "--wait"], check=True, capture_output=True)
    return seconds


def show(name: str, times: list[float], peer: list[float]) -> None:
    """Print a row."""
    middle = statistics.median(times)
    ratio = middle / statistics.median(peer)
    print(f"{name:34}{middle:10.2f}{min(times):10.2f}{max(times):10.2f}{ratio:8.2f}", flush=True)


if __name__ == "__main__":
    main()
