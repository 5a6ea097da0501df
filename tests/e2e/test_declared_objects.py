"""A replica that declares objects: the Sentinel applies those that obey the rules, and reports violations.

test_system_update tests with a new Sentinel that a load request can break rules, because the objects that Alpha renders
obey the rules that we ship.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml
from e2e.administrator import signed_in
from support.declarer import declarer
from support.eventually import eventually_sync
from support.platform import REGISTRY, ROOT

from reside.jazz import AccountId
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, SENTINEL_CONTRACT, SENTINEL_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)
OWNER, STACK, OBJECT = "gardener", "garden", "shed"


def _build_owner(platform: Platform, folder: Path) -> str:
    """Return an image that requires the Sentinel with the permission to manage Deployments."""
    example = ROOT / "examples/replicas/report"
    manifest = yaml.safe_load((example / "replica.yaml").read_text())
    manifest["identity"] = f"{REGISTRY}/{OWNER}"
    manifest["info"]["name"] = OWNER
    requirement = {"identity": SENTINEL_CONTRACT, "permissions": [{"name": "deployment:manage:all"}]}
    manifest["requirements"] = {"sentinel": requirement}
    (folder / "replica.yaml").write_text(yaml.safe_dump(manifest))
    (folder / "main.py").write_text((example / "main.py").read_text())
    return platform.build(folder, "v1")


def _deployment(image: str, **pod: Any) -> dict[str, Any]:
    labels = {"app": OBJECT}
    container = {"name": "main", "image": image}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": OBJECT, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}},
        },
    }


def _exists(platform: Platform) -> bool:
    return bool(platform.get("Deployment", OBJECT))


def test_a_stack_that_breaks_a_rule_is_not_applied_and_the_report_names_rule_and_object(
    platform: Platform, tmp_path: Path
) -> None:
    shown = platform.load(_build_owner(platform, tmp_path)).stdout
    assert "deployment:manage:all" in shown
    greeter = platform.replicas()["greeter"]["image"]
    sentinel = AccountId(platform.secret(SENTINEL_NAME)["accountId"])

    async def run() -> None:
        async with signed_in(platform, OWNER) as node:
            mine = await declarer(node, sentinel)
            await mine.declare(STACK, _deployment(greeter, hostNetwork=True))
            refused = await mine.report(STACK, lambda now: now.get("error"))
            assert f"Deployment/{OBJECT} breaks no-host-access: hostNetwork is on: remove it" in refused["error"]
            assert refused[f"Deployment/{OBJECT}"]["status"] == "error"
            assert not _exists(platform)
            await mine.applied(await mine.declare(STACK, _deployment(greeter)))
            assert _exists(platform)
            mine.desired.delete(STACK)
            await node.flush()

    anyio.run(run)
    eventually_sync(f"the end of {OBJECT}", lambda: not _exists(platform), within=180)
