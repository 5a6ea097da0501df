"""Alpha's part of the bootstrap: data and control blocks, then the load of the system replicas.

All functions are idempotent, so an interrupted bootstrap can be run again. The order matters: loading needs previews,
so Alpha's expected permissions must be in the Sentinel's control block before anything is loaded (docs/model.md,
section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

import structlog

from reside.alpha import instances, lookups, records
from reside.alpha.candidate import next_version
from reside.alpha.data import AlphaData, identity_repository, make_data
from reside.alpha.granting import control_blocks
from reside.alpha.instances import InstanceAccount
from reside.alpha.loading.approve import approve
from reside.alpha.loading.create import create_request, find_request
from reside.alpha.lock_access import give_access, root_user, user_of, users
from reside.alpha.manifest import sentinel_grants
from reside.alpha.records import RequestGone
from reside.jazz import AccountId, Node
from reside.locks import LockService
from reside.model import identities, lookup
from reside.model.alpha_contract import ROOT_NAME
from reside.model.constants import (
    ALPHA_ID,
    ALPHA_IDENTITY,
    ALPHA_NAME,
    OWN,
    SENTINEL_ID,
    SENTINEL_IDENTITY,
    SENTINEL_NAME,
)
from reside.model.errors import Conflict, InvalidInput, LoadRefused
from reside.model.identities import resolved
from reside.model.sentinel_data import REFERENCED_VALUE
from reside.model.stacks import DesiredStack
from reside.registry import ImageReference
from reside.replica.transactions import LOCK_PREFIX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import Credentials
    from reside.locks import EtcdUser
    from reside.model.cluster import ClusterSettings
    from reside.model.stacks import K8sObject

    Approver = Callable[[Alpha, int, str], Awaitable[None]]
    """Approves a load request. Parameters: Alpha, id of the request, previewed revision."""

_log = structlog.get_logger(__name__)
_REFUSED: Final = frozenset({"invalid", "rejected"})
_SYSTEM: Final = ((ALPHA_ID, ALPHA_NAME, ALPHA_IDENTITY), (SENTINEL_ID, SENTINEL_NAME, SENTINEL_IDENTITY))


@dataclass(frozen=True)
class SystemBlocks:
    """Ids of the control blocks of Alpha and the Sentinel."""

    alpha: str
    sentinel: str


async def prepare(
    sync_server_url: str,
    etcd_hosts: Sequence[str],
    alpha: Credentials,
    sentinel_account: Credentials,
    repository: str | None = None,
) -> SystemBlocks:
    """Create both accounts and control blocks, Alpha's data, and Alpha's expected grants (phase Accounts).

    From then on, this process uses the identity repository of the cluster.

    Args:
        sync_server_url: address of Jazz.
        etcd_hosts: addresses of etcd.
        alpha: Alpha's account.
        sentinel_account: the Sentinel's account.
        repository: the cluster's image repository, which is the identity repository of a new cluster; None: there is
            none.

    Raises:
        InvalidInput: the cluster's identities are under another image repository.
    """
    async with Node(sync_server_url, sentinel_account) as node:
        await node.register(SENTINEL_NAME)
        await node.flush()

    async def root() -> EtcdUser:
        return root_user(alpha)

    locking = LockService(etcd_hosts, space=alpha.account_id, user=root, holder="seed")
    async with Node(sync_server_url, alpha) as node, locking as locks:
        public = (await node.register(ALPHA_NAME)).profile.group
        await node.flush()
        if await node.find_unique_map(public.id, ROOT_NAME) is None:
            # Later Alpha does it: then replicas may run that can't log in before it has added their users.
            await users(alpha, locks).secure()
            await users(alpha, locks).add(user_of(alpha, sentinel_account.account_id))
        async with locks.lock(f"{LOCK_PREFIX}{node.unique_map_id(public.id, ROOT_NAME)}") as held:
            data = await make_data(node, public, repository)
            _use(identity_repository(data.root), repository)
            await held.check()
            made = await _make_system_blocks(data, {ALPHA_ID: alpha, SENTINEL_ID: sentinel_account})
            await node.flush()
    return made


def _use(settled: str, repository: str | None) -> None:
    """Use the identity repository; where it is not `OWN`, images are nowhere else."""
    if settled not in (OWN, repository):
        given = "is not set" if repository is None else f"is {repository}"
        raise InvalidInput(
            f"the setting imageRepository {given}, but the identities of this cluster are under {settled}, which is "
            f"where its images are: set it to {settled}"
        )
    identities.use(settled)


async def _make_system_blocks(data: AlphaData, credentials: dict[int, Credentials]) -> SystemBlocks:
    sentinel = AccountId(credentials[SENTINEL_ID].account_id)
    await data.stacks_group.add_member(sentinel, "reader")
    await data.secrets_group.add_member(sentinel, "reader")
    made: dict[int, str] = {}
    for number, name, own in _SYSTEM:
        account = credentials[number].account_id
        made[number] = await control_blocks.make_block(data, number, name, account)
        stored = f"agent-secret.{number}"
        if await lookups.find(data, lookup.replica_by_id(number)) is None:  # else it may have been deleted from Jazz
            secret = await instances.secret_map(data, stored)
            if REFERENCED_VALUE not in secret:
                secret.set(REFERENCED_VALUE, credentials[number].agent_secret)
        where = data.node.unique_map_id(data.secrets_group.id, stored)
        await instances.store_system_account(data, resolved(own), InstanceAccount(account, made[number], where))
    grantee = credentials[ALPHA_ID].account_id
    await control_blocks.set_requirements(
        data.node, made[ALPHA_ID], {SENTINEL_NAME: [credentials[SENTINEL_ID].account_id]}
    )
    await control_blocks.add_expected(data.node, made[SENTINEL_ID], sentinel_grants(grantee))
    async with control_blocks.opened(data.node, made[SENTINEL_ID]) as block:
        await give_access(data, block, user_of(credentials[ALPHA_ID], sentinel))
    return SystemBlocks(alpha=made[ALPHA_ID], sentinel=made[SENTINEL_ID])


async def until_granted(alpha: Alpha, sentinel_block: str) -> None:
    """Wait until the Sentinel has granted all permissions that Alpha's manifest requires (phase Launch)."""
    expected = set(sentinel_grants(alpha.account))
    async with control_blocks.opened(alpha.node, sentinel_block) as block:
        changed = block.watch()
        while True:
            changed.clear()
            await block.refresh()
            granted = {p.ref for p in block.permissions() if p.in_force}
            if expected <= granted:
                return
            await changed.wait()


async def store_settings(alpha: Alpha, settings: ClusterSettings) -> None:
    """Store the settings of the cluster; the Alpha in the cluster follows them."""
    members = settings.document()
    async with alpha.transaction() as tx:
        stored = alpha.data.cluster_settings
        changed = {key: value for key, value in members.items() if key not in stored or stored[key] != value}
        if changed:
            tx.stage(lambda: stored.update(changed))


async def approve_locally(alpha: Alpha, number: int, revision: str) -> None:
    """Approve a request in this process, which must render like the leading Alpha; only the seed calls this."""
    await approve(alpha, number, revision, {})


async def load_system(alpha: Alpha, images: Iterable[str], approver: Approver = approve_locally) -> None:
    """Load images (`identity@digest`) in this order, and approve them; skip those that are current (phase Load).

    An Alpha must lead: `lead(alpha)` in this process, or one in the cluster. The caller sets the deadline.

    Args:
        alpha: the running Alpha.
        images: the images to load.
        approver: how to approve a previewed request. If the Alpha in the cluster leads, ask it by RPC: another version
            of its code may render different stacks.

    Raises:
        LoadRefused: an image can't be loaded; the message names it and the reason.
    """
    for image in images:
        await load(alpha, image, approver)


async def load(alpha: Alpha, image: str, approver: Approver = approve_locally) -> None:
    """Load one image with Alpha's account, and wait until its version exists."""
    reference = ImageReference.parse(resolved(image))
    found = await records.first_of(alpha.data, reference.identity)
    existing = None if found is None else found.value
    current = existing.version(existing.current_version) if existing and existing.current_version else None
    if current is not None and current.digest == reference.digest:
        return
    record = await _find_or_create_request(alpha, f"bootstrap.{next_version(existing)}.{image}", image)
    await _approve_and_wait(alpha, record, image, approver)


async def _find_or_create_request(alpha: Alpha, name: str, image: str) -> RequestRecord:
    """Return the load request of an earlier run, or a new one if there is none or it was refused."""
    for attempt in count(1):
        unique = name if attempt == 1 else f"{name}.{attempt}"
        spec = await alpha.node.unique_map(alpha.data.requests_group, unique, {"image": image})
        await alpha.node.flush()
        try:
            earlier = await find_request(alpha.data, spec.id, alpha.account)
        except RequestGone:
            continue
        if earlier is None or earlier.value.status not in _REFUSED:
            break
    return await create_request(alpha, spec.id, alpha.account)


async def _approve_and_wait(alpha: Alpha, record: RequestRecord, image: str, approver: Approver) -> None:
    async with record.map.watch() as changes:
        async for _ in changes:
            request = (await records.read_request(alpha.data, record.map.id)).value
            if request.version is not None:
                _log.info("loaded", image=image, request=request.id, version=request.version)
                return
            if request.status in _REFUSED:
                raise LoadRefused(f"{image} can't be loaded: {request.error_message or request.rejection_reason}")
            if request.status == "requires-approval" and request.revision is not None:
                try:
                    await approver(alpha, request.id, request.revision)
                except Conflict as error:
                    _log.info("preview renewed", image=image, reason=str(error))


async def declare_stack(alpha: Alpha, name: str, objects: Iterable[K8sObject]) -> str:
    """Declare a stack of Alpha's own, such as `platform`, and return its revision (phase Handover)."""
    stack = DesiredStack(name, alpha.account, tuple(objects))
    await alpha.sentinel.declare(stack)
    return stack.revision
