"""Alpha loads a new version of itself and of the Sentinel, and the cluster goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.images import touched
from support.platform import until

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.parametrize("name", ["kubernetes-sentinel", "alpha"])
def test_a_new_version_of_the_platforms_replicas(platform: Platform, name: str) -> None:
    before = platform.replicas()[name]
    platform.load(touched(platform, before["image"]))

    def moved() -> bool:
        row = platform.replicas()[name]
        pods = platform.pods(f"reside.io/replica={name}")
        versions = {pod["metadata"]["labels"]["reside.io/version"] for pod in pods}
        return row["status"] == "running" and versions == {str(before["version"] + 1)}

    until(f"version {before['version'] + 1} of {name} alone", 180, moved)
    gone = platform.get("deployments", "-l", "reside.io/replica=greeter")["items"][0]["metadata"]["name"]
    platform.kubectl("delete", "deployment", gone)
    until("the Sentinel's repair", 60, lambda: platform.ready_pods("greeter"))
    platform.load(platform.build("examples/replicas/report", "v1"), "--name", f"after-{name[:5]}")
