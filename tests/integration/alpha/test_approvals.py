"""An approval covers everything that it grants, and is given in the state that its preview showed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.alpha_cluster import HOST

from reside.alpha import lookups
from reside.model import lookup
from reside.model.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"


async def push(servers: Servers, name: str, version: int, times: int | None = None) -> str:
    """Push a version of a replica; with `times` it requires a permission with this param. Return its digest."""
    info = {"name": name, "class": "long-running", "exclusive": True, "scalable": True}
    permission = {"name": "greet", "params": {"times": times}}
    required = {"requirements": {"greeting": {"identity": GREETING, "permissions": [permission]}}} if times else {}
    titled = {"en": {"title": f"version {version}"}}
    return await servers.push(f"examples/{name}:v{version}", type="replica", info=info, displayInfo=titled, **required)


async def push_greeter(servers: Servers) -> None:
    """Push the contract `greeting` and a replica that implements it."""
    await servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}}, methods={"greet": {}})
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    implementations = {"greeting": {"identity": GREETING}}
    await servers.push("examples/greeter:v1", type="replica", info=info, implementations=implementations)


async def test_an_approval_names_the_revision_of_its_request_and_not_that_of_the_stack(
    servers: Servers, admin: Client
) -> None:
    """b5760d8: the revision covered the objects only, so an approval of one was an approval of the other."""
    await push_greeter(servers)
    await admin.load("examples/greeter:v1")
    await push(servers, "caller", 1, times=1)
    await admin.load("examples/caller:v1")
    await push(servers, "caller", 2, times=2)
    one, two = [await admin.settled(await admin.create(f"examples/caller:v{version}")) for version in (1, 2)]
    for request in (one, two):
        assert request.preview is not None, request.error_message
        assert request.revision not in (None, request.preview["revision"])
    assert one.revision != two.revision
    for other in ((two.preview or {})["revision"], two.revision):
        with pytest.raises(Conflict, match="another revision"):
            await admin.call("approve-load-request", {"id": one.id, "revision": other})


async def test_permissions_are_pending_until_approved_and_show_their_params(servers: Servers, admin: Client) -> None:
    await push_greeter(servers)
    await admin.load("examples/greeter:v1")
    await push(servers, "caller", 1, times=3)
    number = await admin.create("examples/caller:v1")
    seen, done = await admin.settled(number), await admin.approve(number)
    for request, status in ((seen, "pending"), (done, "approved")):
        assert request.approve_request is not None
        (permission,) = request.approve_request.requirements["greeting"].permissions
        assert (permission.status, permission.params) == (status, {"times": 3})
    assert (seen.decided_by, done.decided_by) == (None, admin.credentials.account_id)


async def test_a_second_approval_before_the_first_is_carried_out_is_previewed_anew(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    digests = [await push(servers, "greeter", version) for version in (1, 2, 3)]
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")  # until then its previews are outdated by what it reports
    first, second = [await admin.create(f"examples/greeter:v{version}") for version in (2, 3)]
    seen = {number: (await admin.settled(number)).revision for number in (first, second)}
    await cluster.stop_leading()
    await admin.call("approve-load-request", {"id": first, "revision": seen[first]})
    with pytest.raises(Conflict, match=f"load request {first} of greeter was approved and is carried out first"):
        await admin.call("approve-load-request", {"id": second, "revision": seen[second]})
    cluster.lead()
    await admin.cluster_request(first, lambda r: r.version is not None)
    request = await admin.settled(second)
    assert request.revision not in (None, seen[second])
    await admin.approve(second)
    assert [v.digest for v in (await cluster.replica("greeter")).versions] == digests
    assert [v.request for v in (await cluster.replica("greeter")).versions] == [first - 1, first, second]


async def test_an_approval_counts_only_for_the_live_versions_that_the_preview_names(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    """Of a preview that has expired, or whose objects changed, nothing is approved: the request is previewed again."""
    await push(servers, "greeter", 1)
    request = await admin.settled(await admin.create("examples/greeter:v1"))
    cluster.orders.live["Deployment/greeter-1"] = "uid generation 2"
    cluster.sentinel.process_again()
    await admin.preview_result(request, lambda found: "generation 2" in str(found))
    with pytest.raises(Conflict, match="previewed again"):
        await admin.call("approve-load-request", {"id": request.id, "revision": request.revision})
    again = await admin.settled(request.id)
    assert again.revision not in (None, request.revision)
    assert "generation 2" in str(again.preview)
    with pytest.raises(Conflict, match="another revision"):
        await admin.call("approve-load-request", {"id": request.id, "revision": request.revision})
    await admin.call("approve-load-request", {"id": request.id, "revision": again.revision})
    await cluster.has_status("greeter", "running")


async def test_a_request_that_waits_for_approval_keeps_its_preview_when_the_sentinel_replaces_its_maps(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push(servers, "greeter", 1)
    request = await admin.settled(await admin.create("examples/greeter:v1"))
    await cluster.replace_previews()
    await admin.preview_result(request, lambda found: found is not None)
    await admin.call("approve-load-request", {"id": request.id, "revision": request.revision})
    await cluster.has_status("greeter", "running")


async def test_two_new_instances_of_one_exclusive_identity_are_approved_one_after_the_other(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push(servers, "greeter", 1)
    first, second = [await admin.create("examples/greeter:v1") for _ in range(2)]
    seen = {number: (await admin.settled(number)).revision for number in (first, second)}
    await cluster.stop_leading()
    await admin.call("approve-load-request", {"id": first, "revision": seen[first]})
    with pytest.raises(Conflict, match="is carried out first"):
        await admin.call("approve-load-request", {"id": second, "revision": seen[second]})
    cluster.lead()
    await admin.approve_latest(second)
    assert len(await cluster.names()) == 1
    (replica,) = [await cluster.replica(name) for name in (await cluster.names()).values()]
    assert [version.request for version in replica.versions] == [first, second]


async def test_an_update_keeps_the_name_of_its_instance(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    for version in (1, 2):
        await push(servers, "greeter", version)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    number = await admin.create("examples/greeter:v2")
    with pytest.raises(InvalidInput, match="updates replica greeter, which keeps its name"):
        await admin.approve(number, name="hello")
    assert (await admin.settled(number)).status == "requires-approval"


async def test_an_approved_load_that_can_not_be_carried_out_becomes_invalid_with_the_reason(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    """Its name was taken after the approval, although open requests hold their names."""
    await push(servers, "greeter", 1)
    number = await admin.create("examples/greeter:v1")
    revision = (await admin.settled(number)).revision
    await cluster.stop_leading()
    await admin.call("approve-load-request", {"id": number, "revision": revision})
    await lookups.set_target(cluster.alpha.data, lookup.replica_by_name("greeter"), "co_zAnotherReplica")
    cluster.lead()
    done = await admin.cluster_request(number, lambda r: r.status != "approved")
    assert (done.status, done.version) == ("invalid", None)
    assert done.error_message == "the name greeter has been taken in the meantime: create a new load request"
