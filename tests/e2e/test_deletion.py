"""Replicas are deleted by the command: their objects, their permissions, their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_dependants_refuse_a_deletion(platform: Platform) -> None:
    if "caller" not in platform.replicas():
        platform.load(platform.build("examples/replicas/caller", "v1"))
    refused = platform.reside("replica", "delete", "greeter", "--auto-approve", check=False)
    assert refused.returncode == 1
    assert "replica greeter is required by caller (greeting): delete these first" in " ".join(refused.stderr.split())
    assert platform.replicas()["greeter"]["status"] == "running"


def test_a_deleted_replica_is_gone_and_its_name_is_free(platform: Platform) -> None:
    image = platform.build("examples/replicas/report", "v1")
    platform.load(image, "--name", "short-lived")
    first = platform.replicas()["short-lived"]["id"]
    said = " ".join(platform.reside("replica", "delete", "short-lived", "--auto-approve").stdout.split())
    assert "Job/short-lived-1, Secret/short-lived" in said
    assert said.endswith("short-lived is deleted")
    assert "short-lived" not in platform.replicas()
    assert [kind for kind in ("Secret", "Job") if platform.objects_of("short-lived", kind)] == []
    platform.load(image, "--name", "short-lived")
    assert platform.replicas()["short-lived"]["id"] > first
    platform.reside("replica", "delete", "short-lived", "--auto-approve")
