"""Compare each phase of the bootstrap with the time from `kubectl apply` to Ready of the same pods.

It needs a local cluster and the images in its registry (`make up`). Each round bootstraps a cluster in a namespace of
its own. Then it applies copies of the same workloads: those of Jazz and etcd in a second namespace, those of Alpha and
the Sentinel beside the originals, whose data they need. Phases without a pod have no peer; the last line compares the
whole bootstrap with both. A second table has the CPU time of each program, on both sides: of the operator's machine, of
Kubernetes, and of the pods. Medians over all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

from reside.cli.cluster_options import IMAGES
from reside.local import LocalCluster

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.processes import cpu_s

if TYPE_CHECKING:
    from reside.local import ClusterInfo

BEFORE, AFTER = "start of Pulumi", "claim"
"""What the command does before its first step, and after its last one."""
STEPS = {
    "Storage namespace": "Storage",
    "Accounts identities": "Accounts",
    "Launch launched": "Launch",
    "Load loaded": "Load",
    "Handover handed-over": "Handover",
    "super admin": AFTER,
}
"""The step with which each phase begins: objects of Accounts are created beside those of Storage."""
SAMPLE_S = 0.2
_LEAST_S = 0.1
PEER = {"app": "bootstrap-peer"}
_SERVED = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences", "namespace")


@dataclass
class Round:
    """The seconds of one round, by phase, and CPU seconds by program."""

    phases: dict[str, float] = field(default_factory=dict)
    peers: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    peer_cpu: dict[str, float] = field(default_factory=dict)


def main() -> None:
    """Run the rounds and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--name", default="default", help="name of the local cluster")
    parser.add_argument("--images", type=Path, default=Path(".state") / IMAGES, help="digests of the images")
    arguments = parser.parse_args()
    info = LocalCluster(arguments.name).info()
    images = arguments.images.absolute()
    rounds = [measure(info, images, f"bench-bootstrap-{os.getpid()}-{number}") for number in range(arguments.rounds)]
    show(rounds)


def measure(info: ClusterInfo, images: Path, namespace: str) -> Round:
    """Bootstrap a cluster, then apply the same pods with kubectl; remove both."""
    kubectl = Kubectl(info, namespace)
    other = Kubectl(info, f"{namespace}-peer")
    with tempfile.TemporaryDirectory() as folder:
        found = Round()
        try:
            with Cpu(info, Path(folder)) as cpu:
                found.phases = bootstrap(info, images, namespace, Path(folder))
            found.cpu = cpu.seconds()
            other.run("create", "namespace", other.namespace)
            storage = [copied(each) for each in kubectl.storage()]
            pods = [copied(each, alone=True) for each in kubectl.deployments()]
            with Cpu(info, Path(folder)) as cpu:
                found.peers = {"Storage": other.applied(storage), "Load": kubectl.applied(pods)}
            found.peer_cpu = cpu.seconds()
        finally:
            kubectl.run("delete", "namespace", "--ignore-not-found", namespace, other.namespace)
    return found


def bootstrap(info: ClusterInfo, images: Path, namespace: str, folder: Path) -> dict[str, float]:
    """Run `reside cluster bootstrap`; return the seconds of each phase."""
    (folder / "state").mkdir()
    (folder / "state" / IMAGES).write_bytes(images.read_bytes())
    where = {"RESIDE_CONFIG": str(folder / "config"), "RESIDE_STATE": str(folder / "state")}
    options = ("--namespace", namespace, "--local", info.name)
    command = [str(Path(sys.executable).with_name("reside")), "cluster", "bootstrap", namespace, *options]
    marks = [(BEFORE, time.monotonic())]
    with subprocess.Popen(command, env=os.environ | where, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None  # noqa: S101 - stderr=PIPE
        lines = []
        for line in run.stderr:
            lines.append(line)
            step, started, _ = line.partition(": ")[2].rstrip().partition(" started")
            if started and step in STEPS:
                marks.append((STEPS[step], time.monotonic()))
    if run.returncode != 0:
        raise SystemExit("".join(lines))
    ends = [*(at for _, at in marks[1:]), time.monotonic()]
    return {name: end - began for (name, began), end in zip(marks, ends, strict=True)}


@dataclass(frozen=True)
class Kubectl:
    """kubectl in one namespace."""

    info: ClusterInfo
    namespace: str

    def run(self, *arguments: str, text: str = "") -> str:
        """Run kubectl; return its output."""
        command = ["kubectl", "--kubeconfig", str(self.info.kubeconfig), "--namespace", self.namespace, *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def storage(self) -> list[dict[str, Any]]:
        """Return the live objects of Jazz and etcd."""
        names = [f"{kind}/{name}" for kind in ("pvc", "service", "statefulset") for name in ("jazz", "etcd")]
        return list(json.loads(self.run("get", *names, "--output=json"))["items"])

    def deployments(self) -> list[dict[str, Any]]:
        """Return the live Deployments of Alpha and the Sentinel."""
        return list(json.loads(self.run("get", "deployments", "--output=json"))["items"])

    def applied(self, objects: list[dict[str, Any]]) -> float:
        """Apply objects; return the seconds until all their pods are ready."""
        began = time.monotonic()
        self.run("apply", "-f", "-", text=yaml.safe_dump_all(objects))
        for each in objects:
            if each["kind"] in ("StatefulSet", "Deployment"):
                self.run("rollout", "status", f"{each['kind']}/{each['metadata']['name']}", "--timeout=300s")
        return time.monotonic() - began


def copied(live: dict[str, Any], *, alone: bool = False) -> dict[str, Any]:
    """Return an object without what Kubernetes adds; beside the original, with a name and labels of its own."""
    metadata = {key: value for key, value in live["metadata"].items() if key not in _SERVED}
    spec = {key: value for key, value in live["spec"].items() if key not in ("volumeName", "clusterIP", "clusterIPs")}
    metadata |= {"annotations": {}, "labels": {}}
    if alone:
        metadata |= {"name": f"{metadata['name']}-peer"}
        labels = {**PEER, "of": metadata["name"]}
        template = {**spec["template"], "metadata": {"labels": labels}}
        spec |= {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, "spec": spec}


class Cpu:
    """The CPU time that the processes of a local cluster and of an operator use while a block runs, by program.

    A process that ends within a fifth of a second may be missed.

    Args:
        info: the local cluster: its processes are in its network namespace or its control group.
        folder: the operator's folder, which is in the environment of the operator's processes.
    """

    def __init__(self, info: ClusterInfo, folder: Path) -> None:
        index = int(str(info.bridge_address).split(".")[1]) - 100
        self._group = f"/reside{index}/".encode()
        self._network = Path(f"/run/netns/reside{index}").stat().st_ino
        self._folder = f"={folder}/".encode()
        self._names: dict[int, str | None] = {}
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._sample(first=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._sample()

    def seconds(self) -> dict[str, float]:
        """Return program → CPU seconds."""
        total: Counter[str] = Counter()
        for pid, last in self._last.items():
            total[str(self._names[pid])] += last - self._first[pid]  # type: ignore[assignment]  # seconds
        return dict(total)

    def _watch(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self._sample()

    def _sample(self, *, first: bool = False) -> None:
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it ended while we looked
                if self._names.get(pid) is None:  # a new process gets its program only after its start
                    self._names[pid] = self._name(path)
                if self._names[pid] is not None and (used := cpu_s(pid)):
                    self._first.setdefault(pid, used if first else 0.0)
                    self._last[pid] = used

    def _name(self, path: Path) -> str | None:
        in_pod = self._group in (path / "cgroup").read_bytes()
        ours = in_pod or self._folder in (path / "environ").read_bytes()
        if not ours and (path / "ns/net").stat().st_ino != self._network:
            return None
        words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
        name = Path(words[0]).name or (path / "comm").read_text().strip()
        module = next((words[at + 1] for at, word in enumerate(words[:-1]) if word == "-m"), None)
        script = next((Path(word).name for word in words[1:2] if not word.startswith("-")), None)
        named = module or (script if name.startswith("python") and script else name)
        return f"{named} (pod)" if in_pod else named


def show(rounds: list[Round]) -> None:
    """Print the medians."""
    print(f"{'':18}{'bootstrap s':>12}{'kubectl s':>12}{'ratio':>8}")
    for phase in (BEFORE, *STEPS.values()):
        _line(phase, [each.phases.get(phase, 0.0) for each in rounds], [each.peers.get(phase) for each in rounds])
    _line("total", [sum(each.phases.values()) for each in rounds], [sum(each.peers.values()) for each in rounds])
    print(f"\n{'CPU':32}{'bootstrap s':>12}{'kubectl s':>12}")
    ours, theirs = _medians([each.cpu for each in rounds]), _medians([each.peer_cpu for each in rounds])
    for name in sorted(ours | theirs, key=lambda name: -ours.get(name, 0.0)):
        if max(ours.get(name, 0.0), theirs.get(name, 0.0)) >= _LEAST_S:
            print(f"{name[:32]:32}{ours.get(name, 0.0):12.1f}{theirs.get(name, 0.0):12.1f}")
    print(f"{'total':32}{sum(ours.values()):12.1f}{sum(theirs.values()):12.1f}")


def _line(name: str, ours: list[float], theirs: list[float | None]) -> None:
    peers = [each for each in theirs if each is not None]
    middle = statistics.median(ours)
    peer = f"{statistics.median(peers):12.2f}{middle / statistics.median(peers):8.2f}" if peers else ""
    print(f"{name:18}{middle:12.2f}{peer}")


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for each in rounds:
        for name, seconds in each.items():
            found[name].append(seconds)
    return {name: statistics.median([*values, *[0.0] * (len(rounds) - len(values))]) for name, values in found.items()}


if __name__ == "__main__":
    main()
