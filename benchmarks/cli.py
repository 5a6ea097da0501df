"""Measure the command line: the start (`--help`), and the time of each command, beside `kubectl` doing the like.

It needs a running ReSide (`make up`), and only reads it. `kubectl` asks the API server of the same cluster. With
`--flux FILE`, the command `flux` of that path does the like, too: `benchmarks/flux/build_cli.sh FOLDER` builds it.

Flux's lists ask the API server for Kustomizations. Where its CRD is missing, they fail after the discovery, and are in
brackets. `kubectl apply -f FOLDER/crds`, and then `kubectl apply -n reside -f benchmarks/flux/kustomization.yaml`, make
the CRD and one object to list; no controller of Flux need run. `flux check --pre` asks for the version of Kubernetes
only, and `flux version --client` nothing: they are its shortest commands.

Each command runs several times, in turn with its peers, and the medians are printed, in seconds: `wall` is what a
person waits for, `cpu` what the process and its children have used. The last column is the ratio of the wall times.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from reside.cli import config  # noqa: E402 - needs the path above
from reside.local import Toolchain  # noqa: E402

NONE = "-"


@dataclass(frozen=True)
class Row:
    """One command and its peers.

    Attributes:
        reside: its arguments.
        kubectl: those of the like in kubectl; empty if there is none.
        flux: those of the like in flux.
    """

    reside: str
    kubectl: str = ""
    flux: str = ""


HELP = (
    Row("--help", "--help", "--help"),
    Row("replica --help", "get --help", "get --help"),
    Row("replica list --help", "get --help", "get kustomizations --help"),
    Row("replica load --help", "apply --help", "create kustomization --help"),
    Row("cluster bootstrap --help", "apply --help", "bootstrap git --help"),
    Row("completion bash", "completion bash", "completion bash"),
)
MACHINE = (
    Row("account list", "config get-users"),
    Row("cluster list", "config get-contexts"),
    Row("cluster info", "config view --minify"),
    Row("explain starting", "explain pod", "version --client"),
)
CLUSTER = (
    Row("replica list", "get deployments", "get kustomizations"),
    Row("replica describe alpha", "describe service alpha", "get kustomizations alpha"),
    Row("replica history alpha", "get replicasets"),
    Row("replica graph", "get services"),
    Row("replica pods alpha", "get pods"),
    Row("replica logs alpha --tail 10", "logs etcd-0 --tail 10"),
    Row("request list", "get events", "events"),
    Row("permission list", "get rolebindings"),
    Row("permission explain admin alpha replica:read:all", "auth can-i list pods"),
    Row("doctor", "get --raw /readyz?verbose", "check --pre"),
)


@dataclass(frozen=True)
class Took:
    """The time of one run, in seconds, and whether it succeeded."""

    wall: float
    cpu: float
    succeeded: bool


def main() -> None:
    """Run the commands and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flux", type=Path, help="path of the command flux")
    arguments = parser.parse_args()
    known = config.load()
    cluster = known.cluster(known.context().cluster)
    place = {"KUBECONFIG": cluster.kubeconfig} if cluster.kubeconfig else {}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | place
    options = [
        "--namespace",
        str(cluster.namespace),
        *(["--context", cluster.kube_context] if cluster.kube_context else []),
    ]
    kubectl = [str(Toolchain.default().find("kubectl")), *options]
    flux = None if arguments.flux is None else [str(arguments.flux), *options]
    print(f"{'':44}{'reside':>14}{'kubectl':>14}{'flux':>14}")
    print(f"{'command':44}{'wall':>7}{'cpu':>7}{'wall':>7}{'cpu':>7}{'wall':>7}{'cpu':>7}{'ratio':>8}")
    for rows in (HELP, MACHINE, CLUSTER):
        for row in rows:
            commands = [[sys.executable, "-m", "reside.cli.main", *row.reside.split()]]
            commands += [[*kubectl, *row.kubectl.split()] if row.kubectl else []]
            commands += [[*flux, *row.flux.split()] if flux and row.flux else []]
            print(_line(row.reside, _measure(commands, arguments.rounds, environment)), flush=True)
    print("a command in brackets has failed")


def _measure(commands: list[list[str]], rounds: int, environment: dict[str, str]) -> list[Took | None]:
    """Return the medians of each command; None for an empty one."""
    runs: list[list[Took]] = [[] for _ in commands]
    for _ in range(rounds):
        for taken, command in zip(runs, commands, strict=True):
            if command:
                taken.append(_run(command, environment))
    return [_median(taken) if taken else None for taken in runs]


def _run(command: list[str], environment: dict[str, str]) -> Took:
    """Run a command, and drop what it prints."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(wall, cpu, succeeded=done.returncode == 0)


def _median(taken: list[Took]) -> Took:
    wall, cpu = (statistics.median(getattr(each, name) for each in taken) for name in ("wall", "cpu"))
    return Took(wall, cpu, succeeded=all(each.succeeded for each in taken))


def _line(name: str, taken: list[Took | None]) -> str:
    """Return a line of the table; the last column compares with kubectl."""
    cells = "".join(f"{_cell(each, 'wall'):>7}{_cell(each, 'cpu'):>7}" for each in taken)
    own, peer = taken[:2]
    ratio = f"{own.wall / peer.wall:.1f}" if own and peer else NONE
    return f"{name:44}{cells}{ratio:>8}"


def _cell(taken: Took | None, member: str) -> str:
    if taken is None:
        return NONE
    text = f"{getattr(taken, member):.2f}"
    return text if taken.succeeded else f"({text})"


if __name__ == "__main__":
    main()
