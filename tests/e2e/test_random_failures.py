"""Replicas are loaded while parts of the platform are killed at random: every load ends, without duplicates."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]
ROUNDS = int(os.environ.get("RESIDE_SOAK_ROUNDS", "10"))
SEED = int(os.environ.get("RESIDE_SOAK_SEED", "1"))
VICTIMS = (
    "reside.io/replica=alpha",
    "reside.io/replica=kubernetes-sentinel",
    "app.kubernetes.io/name=jazz",
    "app.kubernetes.io/name=etcd",
)


def test_loads_complete_while_pods_are_killed(platform: Platform) -> None:
    chance = random.Random(SEED)  # noqa: S311 - a seed to replay a failure
    image = platform.build("examples/replicas/report", "v1")
    for number in range(ROUNDS):
        name, victim = f"soak-{number}", chance.choice(VICTIMS)
        kill = ("delete", "pod", "-l", victim, "--force", "--grace-period=0", "--wait=false")
        said = platform.load_and_disturb(image, name, lambda kill=kill: platform.kubectl(*kill))
        eventually_sync(
            f"the end of {name} after {victim} died (load said: {said})",
            lambda name=name: platform.replicas().get(name, {}).get("status") == "completed",
            within=300,
        )
        assert len(platform.objects_of(name, "Job")) == 1
    assert len([name for name in platform.replicas() if name.startswith("soak-")]) == ROUNDS
