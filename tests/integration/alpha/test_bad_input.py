"""Bad input to a running Alpha is `invalid` or is refused, with a message that names problem and cure."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import CODE, HOST, AlphaCluster, Client, Servers, alpha_cluster

from reside.alpha.loading import validate
from reside.model.errors import Conflict, InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    """Yield one cluster for all these tests: refusals have no effect, and each test loads replicas of its own."""
    async with alpha_cluster(servers) as made:
        await push_bad_images(servers)
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    return await cluster.admin()


def info(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "class": "long-running", "exclusive": True, "scalable": True} | members


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("bad/nothing:v1", "has no such image"),
        ("Bad Reference", "is not a repository"),
        ("bad/nolabel:v1", r"has no label io.reside.manifest: build it with `reside build`"),
        ("bad/nobase64:v1", "not base64"),
        ("bad/nojson:v1", "not JSON"),
        ("bad/noschema:v1", "does not match the schema"),
        ("bad/identity:v1", "identity is .*/bad/another, but the image is .*/bad/identity"),
        ("bad/contract.v1:v1", "is a contract, not a replica"),
        ("bad/twice:v1", "implemented twice, as 'one' and 'two'"),
        ("bad/unknowncontract:v1", "contract .*/contracts/nobody.v1 is unknown"),
        ("bad/unimplemented:v1", "no replica implements .*/contracts/lonely.v1"),
    ],
)
async def test_an_invalid_image_makes_the_request_invalid(admin: Client, image: str, message: str) -> None:
    request = await admin.settled(await admin.create(image))
    assert request.status == "invalid"
    assert request.error_message is not None
    assert re.search(message, request.error_message), request.error_message


async def push_bad_images(servers: Servers) -> None:
    await servers.push("bad/nolabel:v1", "")
    await servers.push("bad/nobase64:v1", "%%%")
    await servers.push("bad/nojson:v1", encoded("{"))
    await servers.push("bad/noschema:v1", encoded('{"type": "replica"}'))
    await servers.push("bad/identity:v1", type="replica", info=info("bad"), identity=f"{HOST}/bad/another")
    await servers.push("bad/contract.v1:v1", type="contract")
    await servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}})
    await servers.push("contracts/lonely.v1", type="contract")
    twice = {"one": {"identity": GREETING}, "two": {"identity": GREETING}}
    await servers.push("bad/twice:v1", type="replica", info=info("bad"), implementations=twice)
    for name, contract in (("unknowncontract", "nobody.v1"), ("unimplemented", "lonely.v1")):
        requirements = {"it": {"identity": f"{HOST}/contracts/{contract}"}}
        await servers.push(f"bad/{name}:v1", type="replica", info=info("bad"), requirements=requirements)


async def test_an_unknown_permission_is_invalid(servers: Servers, admin: Client) -> None:
    implementations = {"greeting": {"identity": GREETING}}
    await servers.push("examples/greeter:v1", type="replica", info=info("greeter"), implementations=implementations)
    await admin.load("examples/greeter:v1")
    requirements = {"greeting": {"identity": GREETING, "permissions": [{"name": "shout"}]}}
    await servers.push("examples/caller:v1", type="replica", info=info("caller"), requirements=requirements)
    request = await admin.settled(await admin.create("examples/caller:v1"))
    assert request.status == "invalid"
    assert "has no permission 'shout'; it has greet" in (request.error_message or "")


async def test_changed_info_is_invalid(servers: Servers, admin: Client) -> None:
    await servers.push("examples/changed:v1", type="replica", info=info("changed"))
    await admin.load("examples/changed:v1")
    await servers.push("examples/changed:v2", type="replica", info=info("changed", scalable=False))
    request = await admin.settled(await admin.create("examples/changed:v2"))
    assert request.status == "invalid"
    assert "scalable True → False" in (request.error_message or "")


async def test_a_replica_id_that_does_not_exist_or_is_anothers_is_invalid(servers: Servers, admin: Client) -> None:
    await servers.push("examples/one:v1", type="replica", info=info("one"))
    await servers.push("examples/other:v1", type="replica", info=info("other", exclusive=False))
    loaded = await admin.load("examples/one:v1")
    for number, message in ((77, "replica 77 does not exist"), (loaded.target_replica, "not of")):
        request = await admin.settled(await admin.create("examples/other:v1", replicaId=number))
        assert request.status == "invalid"
        assert message in (request.error_message or "")


async def test_a_reference_without_a_registry_is_invalid(admin: Client) -> None:
    """`reside` refuses it itself; other programs may write it."""
    spec = await admin.create_spec(image="greeter")
    request = await admin.settled((await admin.call("create-load-request", {"wish": spec.id}))["id"])
    assert request.status == "invalid"
    assert "registry" in (request.error_message or "")


async def test_a_broken_rule_makes_the_request_invalid_naming_rule_and_object(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await servers.push("examples/broken:v1", type="replica", info=info("broken"))
    cluster.orders.violations = ("no-privileged: Deployment/broken-1",)
    request = await admin.settled(await admin.create("examples/broken:v1"))
    cluster.orders.violations = ()
    assert request.status == "invalid"
    assert request.error_message == "the stack breaks the policy: no-privileged: Deployment/broken-1"


async def test_a_request_waits_for_an_unavailable_registry_and_is_invalid_after_a_timeout(
    cluster: AlphaCluster, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate, "REGISTRY_TIMEOUT_S", 1.0)
    spec = await admin.create_spec(image="down.internal:1/examples/plain:v1")
    mirrors = cluster.alpha.cluster.registry_mirrors | {"down.internal:1": "http://127.0.0.1:1"}
    await cluster.change_settings(registry_mirrors=mirrors)
    number = (await admin.call("create-load-request", {"wish": spec.id}))["id"]
    request = await admin.settled(number)
    assert request.status == "invalid"
    assert "create a new load request when the registry is available again" in (request.error_message or "")


@pytest.mark.parametrize(
    ("method", "body", "permission"),
    [
        ("create-load-request", {"wish": "co_zAAAAAAAAAAAAAAAAAAAA"}, "load-request:create"),
        ("approve-load-request", {"id": 1, "revision": "x"}, "load-request:approve"),
        ("reject-load-request", {"id": 1, "reason": "no"}, "load-request:approve"),
    ],
)
async def test_calls_without_the_permission_have_no_effect(
    cluster: AlphaCluster, method: str, body: dict[str, Any], permission: str
) -> None:
    stranger = await cluster.client("stranger")
    with pytest.raises(NotAllowed, match=permission):
        await stranger.call(method, body)


async def test_a_request_value_of_another_account_is_refused(cluster: AlphaCluster, admin: Client) -> None:
    stranger = await cluster.client("stranger")
    spec = await stranger.create_spec(image=f"{HOST}/examples/plain:v1")
    with pytest.raises(InvalidInput, match="was written by"):
        await admin.call("create-load-request", {"wish": spec.id})


async def test_only_the_first_transaction_of_a_request_value_counts(servers: Servers, admin: Client) -> None:
    await servers.push("examples/plain:v1", type="replica", info=info("plain", exclusive=False))
    spec = await admin.create_spec(image=f"{HOST}/examples/plain:v1")
    spec.set("name", "smuggled")
    spec.set("image", f"{HOST}/bad/nothing:v1")
    await admin.node.flush()
    request = await admin.settled((await admin.call("create-load-request", {"wish": spec.id}))["id"])
    assert request.status == "requires-approval", request.error_message
    assert request.image == f"{HOST}/examples/plain:v1"
    assert request.requested_name is None


async def test_an_unreadable_or_malformed_request_value_is_refused(admin: Client) -> None:
    hidden = admin.node.create_group().create_map({"image": "x"})
    await admin.node.flush()
    with pytest.raises(InvalidInput, match=r"make the account .* a reader"):
        await admin.call("create-load-request", {"wish": hidden.id})
    malformed = await admin.create_spec(picture="x")
    with pytest.raises(InvalidInput, match="image"):
        await admin.call("create-load-request", {"wish": malformed.id})
    with pytest.raises(InvalidInput, match="wish"):
        await admin.call("create-load-request", {"wish": "nonsense"})


async def test_an_unknown_request_can_not_be_approved(admin: Client) -> None:
    with pytest.raises(InvalidInput, match="load request 99 does not exist"):
        await admin.call("approve-load-request", {"id": 99, "revision": "x"})


async def test_super_admin_is_claimed_once_with_the_code(cluster: AlphaCluster, admin: Client) -> None:
    stranger = await cluster.client("stranger")
    with pytest.raises(NotAllowed, match="the code is wrong"):
        await stranger.call("claim-super-admin", {"code": "guess"})
    with pytest.raises(Conflict, match="claimed by another account"):
        await stranger.call("claim-super-admin", {"code": CODE})
    await admin.call("claim-super-admin", {"code": CODE})
    assert cluster.alpha.data.root["superAdminAccount"] == admin.credentials.account_id
