"""The bootstrap is killed at random moments of all its phases: the next run finishes it, and nothing is there twice."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e.bootstraps import PHASES, STEPS, beside, bootstrap, check_up, contents, wait_for_start
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from support.platform import Platform

MOMENTS = int(os.environ.get("RESIDE_SOAK_KILLS", "30"))
SEED = int(os.environ.get("RESIDE_SOAK_SEED", "1"))
pytestmark = [pytest.mark.soak, pytest.mark.timeout(MOMENTS * 240 + 600)]
_SUFFIX = re.compile(r"(-[a-z0-9]{8,10})?-[a-z0-9]{5}$|-[a-z0-9]{8,10}$")
"""What Kubernetes appends to the names of pods, ReplicaSets and the like."""
_NAMED_AT_RANDOM = ("Pod", "ReplicaSet", "EndpointSlice", "ControllerRevision", "PodMetrics")


@dataclass(frozen=True)
class Whole:
    """A cluster whose bootstrap nobody killed."""

    cluster: Platform
    seconds: dict[str, float]
    """Duration of each phase."""


def test_a_bootstrap_killed_at_any_moment_is_finished_by_the_next_run(kubernetes: Platform) -> None:
    sys.stdout.write(f"RESIDE_SOAK_SEED={SEED} repeats these moments\n")
    whole = unharmed(kubernetes)
    expected = inventory(whole.cluster)
    chance = random.Random(SEED)  # noqa: S311 - a seed to replay a failure
    for number in range(MOMENTS):
        phase = PHASES[number % len(PHASES)]
        delay = chance.uniform(0, whole.seconds[phase])
        sys.stdout.write(f"moment {number}: {delay:.2f} s after the start of {phase}\n")
        cluster = beside(kubernetes, f"killed-{number}")
        kill(cluster, phase, delay)
        eventually_sync("the end of all its processes", lambda cluster=cluster: not processes(cluster), within=60)
        cluster.run(*bootstrap(cluster), seconds=600)
        check_up(cluster)
        eventually_sync(
            f"the inventory after moment {number}",
            lambda cluster=cluster: inventory(cluster),
            lambda found: found == expected,
            within=180,
            show=lambda found: str(
                {key: (found[key], expected[key]) for key in found | expected if found[key] != expected[key]}
            ),
        )
        kubernetes.run("kubectl", "delete", "namespace", cluster.namespace, "--wait=true")


def start(cluster: Platform) -> subprocess.Popen[str]:
    return subprocess.Popen(
        bootstrap(cluster), env=cluster.environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def unharmed(kubernetes: Platform) -> Whole:
    """Bootstrap a cluster, and measure its phases."""
    cluster = beside(kubernetes, "whole")
    began: dict[str, float] = {}
    with start(cluster) as run:
        assert run.stderr is not None
        for line in run.stderr:
            phase = next((name for name, step in STEPS.items() if f" {step} started" in line), None)
            if phase is not None:
                began.setdefault(phase, time.monotonic())
    assert run.returncode == 0
    ends = [*list(began.values())[1:], time.monotonic()]
    check_up(cluster)
    return Whole(cluster, {name: end - at for (name, at), end in zip(began.items(), ends, strict=True)})


def kill(cluster: Platform, phase: str, delay: float) -> None:
    """Start a bootstrap, and kill all its processes some seconds after the start of a phase."""
    with start(cluster) as run:
        wait_for_start(run, STEPS[phase])
        with suppress(subprocess.TimeoutExpired):
            run.wait(delay)
        with suppress(ProcessLookupError):  # it has finished
            os.killpg(run.pid, signal.SIGKILL)


def processes(cluster: Platform) -> list[str]:
    """Return the commands that run with this cluster's state on this machine."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if f"RESIDE_STATE={cluster.folder / 'state'}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def inventory(cluster: Platform) -> Counter[str]:
    """Count what a bootstrap leaves: objects, load requests, accounts, and files of the operator's state."""
    found = Counter(_named(name, cluster.namespace) for name in contents(cluster))
    for request in json.loads(cluster.reside("request", "list", "--all", "--output", "json").stdout):
        found[f"request of {request['image'].partition('@')[0]}: {request['status']}"] += 1
    for account in json.loads(cluster.reside("account", "list", "--output", "json").stdout):
        found[f"account {account['name']}"] += 1
    state = cluster.folder / "state"
    found.update(f"file {path.relative_to(state)}" for path in state.glob("tmp/*"))
    found.update(f"lock {path.relative_to(state)}" for path in state.glob(".pulumi/locks/**/*.json"))
    return found


def _named(name: str, namespace: str) -> str:
    """Return `Kind/name` without what differs between clusters."""
    kind, _, rest = name.partition("/")
    return f"{kind}/{_SUFFIX.sub('', rest) if kind in _NAMED_AT_RANDOM else rest}".replace(namespace, "NAMESPACE")
