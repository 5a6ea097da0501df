"""Compare the time from approval to Ready of a replica's new version with that from `kubectl apply` to Ready.

It needs a running ReSide (`make up`). Both sides run the same pod, one after the other, several times; the last column
is the ratio of the medians. The first run loads a greeter named `bench`, which gets a new version in each round and
remains, because replicas can't be deleted yet.

With `--attacked`, each round loads one more version while strangers attack every value that the operator knows
(tests/interop/strangers/attack.py), and the table has the time from the request to Ready, with and without them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightkube import AsyncClient, KubeConfig
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

from reside.access.addresses import jazz_address
from reside.cli import config
from reside.cli.loading import approve, create_request, follow_version, wait_validated
from reside.cli.replicas import ReplicaView
from reside.cli.session import Session, open_session, target_of
from reside.model.entities import HealthPolicy, LoadRequest, LoadRequestSpec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from interop.strangers.attacking import GUESSED, attacking

if TYPE_CHECKING:
    from reside.cli.config import Cluster

NAME = "bench"
IMAGE = "registry.reside.internal/reside/examples/greeter:latest"
DEADLINE_S = 120.0


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--attacked", action="store_true")
    arguments = parser.parse_args()
    known = config.load()
    cluster = known.cluster(known.context().cluster)
    if arguments.attacked:
        usual, other = asyncio.run(_measure_attacked(known, cluster, arguments.rounds))
        rows = (("request → Ready", usual), ("the same under attack", other))
    else:
        reside, kubectl = asyncio.run(_measure(known, cluster, arguments.rounds))
        rows = (("kubectl apply → Ready", kubectl), ("approval → Ready", reside))
    print(f"{'':28}{'median s':>10}{'min s':>10}{'max s':>10}{'ratio':>8}")
    peer = statistics.median(rows[0][1])
    for name, times in rows:
        middle = statistics.median(times)
        print(f"{name:28}{middle:10.2f}{min(times):10.2f}{max(times):10.2f}{middle / peer:8.2f}")


async def _measure(known: config.Config, cluster: Cluster, rounds: int) -> tuple[list[float], list[float]]:
    reside, kubectl = [], []
    client = AsyncClient(_kube_config(cluster), namespace=cluster.namespace, trust_env=False)
    async with open_session(known) as session:
        for _ in range(rounds):
            _, seconds, version = await _load(session, client)
            reside.append(seconds)
            live = await client.get(Deployment, f"{NAME}-{version}")
            kubectl.append(await _apply(client, cluster, _same(live.to_dict())))
    return reside, kubectl


async def _measure_attacked(known: config.Config, cluster: Cluster, rounds: int) -> tuple[list[float], list[float]]:
    usual, attacked = [], []
    client = AsyncClient(_kube_config(cluster), namespace=cluster.namespace, trust_env=False)
    async with open_session(known) as session, jazz_address(target_of(cluster)) as url:
        await _load(session, client)
        for _ in range(rounds):
            usual.append((await _load(session, client))[0])
            cores = [core for core in session.node._host.store.cores.values() if core.header is not None]
            with tempfile.TemporaryDirectory() as folder:
                async with attacking(
                    url,
                    values=[core.co_id for core in cores],
                    groups=[core.co_id for core in cores if core.header is not None and core.header.is_group],
                    names=GUESSED,
                    folder=Path(folder),
                ) as attack:
                    await attack.round()
                    attacked.append((await _load(session, client))[0])
    return usual, attacked


def _kube_config(cluster: Cluster) -> Any:
    if cluster.kubeconfig is None:
        raise SystemExit("the benchmark runs on the local cluster: run `make up` first")
    return KubeConfig.from_file(cluster.kubeconfig).get(context_name=cluster.kube_context)


async def _load(session: Session, client: Any) -> tuple[float, float, int]:
    """Load a version; return the seconds from the request, and those from the approval, to Ready, and its number."""
    requested = time.monotonic()
    known = next((row for row in await ReplicaView(session.node, session.data).rows() if row["name"] == NAME), None)
    spec = LoadRequestSpec(image=IMAGE, name=NAME, replica_id=known["id"] if known else None)
    _, request = await create_request(session, spec)
    seen = await wait_validated(request, lambda _: None)
    expected = (known["version"] if known else 0) + 1
    labels = {"reside.io/replica": NAME, "reside.io/version": str(expected)}
    began = time.monotonic()
    approving = asyncio.create_task(approve(session, request, seen, _approve_any, lambda _: None))
    await _ready(client, labels)
    ready = time.monotonic()
    version = (await approving).version or expected
    await follow_version(session, NAME, version, HealthPolicy(), lambda _: None)
    return ready - requested, ready - began, version


async def _approve_any(_seen: LoadRequest) -> None:
    """Approve without a review."""


async def _apply(client: Any, cluster: Cluster, manifest: dict[str, Any]) -> float:
    labels = manifest["spec"]["selector"]["matchLabels"]
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "--namespace", target_of(cluster).namespace]
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command, "apply", "-f", "-", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    await process.communicate(json.dumps(manifest).encode())
    if process.returncode != 0:
        raise SystemExit("kubectl apply failed: see above")
    await _ready(client, labels)
    seconds = time.monotonic() - began
    await client.delete(Deployment, manifest["metadata"]["name"])
    await _until_deleted(client, labels)
    return seconds


def _same(live: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the Deployment with another name, and with labels that no other selector matches."""
    labels = {"app": f"{NAME}-peer"}
    template = live["spec"]["template"]
    spec = {
        **live["spec"],
        "selector": {"matchLabels": labels},
        "template": {**template, "metadata": {"labels": labels}},
    }
    metadata = {"name": f"{NAME}-peer", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {**spec, "replicas": 1}}


async def _ready(client: Any, labels: dict[str, str]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        async for _, pod in client.watch(Pod, labels=labels):
            conditions = (pod.status and pod.status.conditions) or []
            if any(c.type == "Ready" and c.status == "True" for c in conditions):
                return


async def _until_deleted(client: Any, labels: dict[str, str]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        left = {pod.metadata.name async for pod in client.list(Pod, labels=labels)}
        if not left:
            return
        async for event, pod in client.watch(Pod, labels=labels):
            left = left - {pod.metadata.name} if event == "DELETED" else left | {pod.metadata.name}
            if not left:
                return


if __name__ == "__main__":
    main()
