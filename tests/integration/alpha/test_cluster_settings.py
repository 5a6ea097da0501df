"""The settings of a cluster are data: a change takes effect without a restart of Alpha or of any pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import HOST
from support.eventually import eventually

from reside.alpha import bootstrap
from reside.alpha.granting.control_blocks import opened
from reside.alpha.stacks import workload
from reside.model.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.model.entities import Replica, TemplateChange

pytestmark = pytest.mark.anyio

INFO = {"name": "worker", "class": "long-running", "exclusive": True, "scalable": True}
WORKING = f"{HOST}/contracts/working.v1"
RESOURCES = "spec.containers[0].resources.requests.cpu"


@pytest.fixture
async def worker(cluster: AlphaCluster, servers: Servers, admin: Client) -> Replica:
    """Load a replica with a method."""
    await servers.push("contracts/working.v1", type="contract", methods={"work": {}})
    await servers.push(
        "examples/worker:v1", type="replica", info=INFO, implementations={"working": {"identity": WORKING}}
    )
    await admin.load("examples/worker:v1")
    await cluster.has_status("worker", "running")
    return await cluster.replica("worker")


async def declared(cluster: AlphaCluster) -> dict[str, Any]:
    """Return the declared objects of the worker by `Kind/name`."""
    stack = await cluster.alpha.sentinel.read_desired("worker")
    assert stack is not None
    return dict(zip(stack.keys(), stack.objects, strict=True))


async def template(cluster: AlphaCluster) -> dict[str, Any]:
    """Return the declared pod template of the worker."""
    found: dict[str, Any] = (await declared(cluster))["Deployment/worker-1"]["spec"]["template"]
    return found


async def template_change(cluster: AlphaCluster) -> TemplateChange | None:
    """Return what a new pod template would change in the worker."""
    return (await cluster.replica("worker")).version(1).template_change


async def test_another_domain_changes_ingress_and_external_endpoint_but_no_pod(
    cluster: AlphaCluster, worker: Replica
) -> None:
    """fdfab45: the bootstrap said done, and nothing changed."""
    before = await template(cluster)
    for domain in ("one.example.org", "two.example.org"):
        await cluster.change_settings(domain=domain, cluster_issuer="ca")

        async def hosts() -> list[str]:
            ingress = (await declared(cluster)).get("Ingress/worker")
            return [rule["host"] for rule in ingress["spec"]["rules"]] if ingress else []

        await eventually("the ingress", hosts, lambda found, domain=domain: found == [domain])
    async with opened(cluster.alpha.node, worker.control_block) as block:
        assert block.external_endpoint == "https://two.example.org"
        await cluster.change_settings(domain=None, cluster_issuer=None)
        await eventually("no external endpoint", lambda: block.external_endpoint is None)
        assert block.has_external_endpoint
    assert await template(cluster) == before


async def test_another_default_placement_group_moves_the_pods(cluster: AlphaCluster, worker: Replica) -> None:
    before = await template(cluster)
    await cluster.change_settings(default_placement_group="ssd")

    async def placement() -> Any:
        return (await template(cluster))["spec"].get("nodeSelector")

    await eventually("the placement", placement, lambda found: found == {"reside.io/placement-group": "ssd"})
    after = await template(cluster)
    assert after["spec"].pop("nodeSelector")
    assert after == before


async def test_images_of_a_registry_that_is_added_can_be_loaded(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    address = next(iter(servers.registry.mirrors.values()))
    await cluster.change_settings(registry_mirrors=servers.registry.mirrors | {"other.internal": address})
    spec = await admin.create_spec(image="other.internal/examples/worker:v1")
    number = int((await admin.call("create-load-request", {"wish": spec.id}))["id"])
    request = await admin.settled(number)
    assert "identity" in str(request.error_message), "the image was read, and has the identity of the first registry"


async def test_malformed_settings_are_an_error_until_the_bootstrap_stores_others(cluster: AlphaCluster) -> None:
    cluster.alpha.data.cluster_settings.set("domain", 7)
    with pytest.raises(InvalidInput, match=r"stored settings of the cluster: .*domain"):
        _ = cluster.alpha.cluster
    await bootstrap.store_settings(cluster.alpha, cluster.alpha.initial)
    assert cluster.alpha.cluster == cluster.alpha.initial


async def test_a_newer_alpha_restarts_no_pod_and_shows_what_would_change(
    cluster: AlphaCluster, worker: Replica, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await template(cluster)
    await cluster.stop_leading()
    monkeypatch.setattr(workload, "CPU_REQUEST", "21m")
    cluster.lead()
    change = await eventually("what would change", lambda: template_change(cluster))
    assert change is not None
    assert change.paths == (RESOURCES,)
    assert await template(cluster) == before
    with pytest.raises(Conflict, match="another one now"):
        await admin.call("refresh-replica", {"replica": worker.id, "digest": "0" * 64})
    await admin.call("refresh-replica", {"replica": worker.id, "digest": change.digest})

    async def cpu() -> str:
        return str((await template(cluster))["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    await eventually("the new template", cpu, lambda found: found == "21m")
    await eventually("nothing to change", lambda: template_change(cluster), lambda found: found is None)
    with pytest.raises(Conflict, match="up to date"):
        await admin.call("refresh-replica", {"replica": worker.id, "digest": change.digest})


async def test_a_template_that_was_refreshed_is_kept_by_the_alpha_after_it(
    cluster: AlphaCluster, worker: Replica, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cpu, expected in (("21m", "21m"), ("22m", "21m")):
        await cluster.stop_leading()
        monkeypatch.setattr(workload, "CPU_REQUEST", cpu)
        cluster.lead()
        change = await eventually("what would change", lambda: template_change(cluster))
        assert change is not None
        if cpu == expected:
            await admin.call("refresh-replica", {"replica": worker.id, "digest": change.digest})
            await eventually("nothing to change", lambda: template_change(cluster), lambda found: found is None)
        assert (await template(cluster))["spec"]["containers"][0]["resources"]["requests"]["cpu"] == expected
