"""The NetworkPolicies that Alpha and the bootstrap declare are accepted by Kubernetes, and stay as they are."""

import asyncio
import itertools
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from support.sentinel import get
from unit.alpha.entities import CLUSTER
from unit.alpha.test_network_policies import FULL, policies

from reside.local import ClusterInfo
from reside.model.constants import STACK_LABEL

pytestmark = pytest.mark.anyio


async def test_network_policies_are_applied_as_declared_and_a_second_apply_changes_nothing(
    cluster: ClusterInfo, setup: Setup
) -> None:
    settings = FULL.model_copy(
        update={
            "namespace": setup.namespace,
            "domain": "example.org",
            "cluster_issuer": "letsencrypt",
            "traces_endpoint": "http://collector:4318",
        }
    )
    assert CLUSTER.network_policies == "off"
    stacks: dict[str, list[dict[str, Any]]] = {}
    for obj in policies(settings):
        stacks.setdefault(obj["metadata"]["labels"].get(STACK_LABEL, "platform"), []).append(obj)
    async with setup.running():
        alpha = await setup.alpha()
        declared = [await alpha.declare(name, *objects) for name, objects in stacks.items()]
        for stack in declared:
            assert (await alpha.applied(stack))["error"] is None
        for obj in itertools.chain(*stacks.values()):
            found = await asyncio.to_thread(get, cluster, setup.namespace, f"NetworkPolicy/{obj['metadata']['name']}")
            assert found is not None
            assert found["spec"] == obj["spec"]
        again = await alpha.ask("again", "caller", *stacks["caller"])
        assert again["error"] is None
        assert [change for change in again["changes"] if change["action"] != "same"] == []
