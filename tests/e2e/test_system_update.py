"""Alpha loads a new version of itself and of the Sentinel, and the cluster continues; a new Sentinel has new rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.images import stricter, touched
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def _update(platform: Platform, name: str, changed: Callable[[Platform, str], str]) -> None:
    """Load a changed image of a platform replica; check that only the new version runs, and works."""
    before = platform.replicas()[name]
    platform.load(changed(platform, before["image"]))

    version = str(before["version"] + 1)

    def look() -> tuple[str, set[str]]:
        pods = platform.objects_of(name, "Pod")
        return platform.replicas()[name]["status"], {pod["metadata"]["labels"]["reside.io/version"] for pod in pods}

    eventually_sync(f"version {version} of {name} alone", look, lambda seen: seen == ("running", {version}), within=180)
    gone = platform.objects_of("greeter", "Deployment")[0]["metadata"]["name"]
    platform.kubectl("delete", "deployment", gone)
    eventually_sync("the Sentinel's repair", lambda: platform.ready_pods("greeter"), within=180)
    platform.load(platform.build("examples/replicas/report", "v1"), "--name", f"after-{name[:5]}")


def test_a_new_version_of_alpha(platform: Platform) -> None:
    _update(platform, "alpha", touched)


def test_a_new_version_of_the_sentinel_whose_rule_makes_a_request_invalid(platform: Platform) -> None:
    _update(platform, "kubernetes-sentinel", stricter)
    result = platform.load(platform.build("examples/replicas/report", "v1"), "--name", "forbidden", check=False)
    assert result.returncode == 1
    said = " ".join(result.stderr.split())
    assert "is invalid: the stack breaks the policy: " in said
    for name in ("Secret/forbidden", "Job/forbidden-1"):
        assert f"{name} breaks house-rule: nothing may be called forbidden" in said
    assert "forbidden" not in platform.replicas()
    assert not platform.get("Secret", "forbidden")
