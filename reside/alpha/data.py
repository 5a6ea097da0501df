"""Alpha's data in Jazz (docs/model.md, section 3): created once, found again at every later start.

Invariants: `make_data` is idempotent, since it creates a member only if it is missing; its caller holds Alpha's lock,
so nothing is created twice; the public group belongs to Alpha, and everyone can read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reside.alpha import open_requests
from reside.model import alpha_contract as names
from reside.model.constants import OWN
from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import CoList, CoMap, Group, Node

_GROUPS: Final = {
    names.REPLICAS_GROUP: "replicas",
    names.LOAD_REQUESTS_GROUP: "load requests",
    names.STACKS_GROUP: "stacks",
    names.SECRETS_GROUP: "secrets",
    names.BLOCK_MANAGERS_GROUP: "rcb managers",
    names.REPLICA_MANAGERS_GROUP: "replica managers",
    names.PERMISSION_MANAGERS_GROUP: "permission managers",
}
_LISTS: Final = {
    names.REPLICAS: names.REPLICAS_GROUP,
    names.CONTRACTS: None,
    names.LOAD_REQUESTS: names.LOAD_REQUESTS_GROUP,
    names.CONTROL_BLOCKS: names.BLOCK_MANAGERS_GROUP,
}
_EMPTY_MAPS: Final = {
    names.FINISHED_REQUESTS: names.LOAD_REQUESTS_GROUP,
    names.DIRECT_GRANTS: names.PERMISSION_MANAGERS_GROUP,
    names.CLUSTER_SETTINGS: None,
}
_MAPS: Final = (
    names.OPEN_REQUESTS,
    names.FINISHED_REQUESTS,
    names.REPLICAS_BY_ACCOUNT,
    names.DIRECT_GRANTS,
    names.CLUSTER_SETTINGS,
)


@dataclass(frozen=True)
class AlphaData:
    """Alpha's data in Jazz, opened: the root map, the groups, the lists."""

    node: Node
    root: CoMap
    public: Group
    replicas_group: Group
    requests_group: Group
    stacks_group: Group
    secrets_group: Group
    blocks_group: Group
    """Owns the list of control blocks; its writers can write every control block."""
    management_group: Group
    """Owns the management maps; its writers can enable, disable and place replicas."""
    permissions_group: Group
    """Owns the map of direct grants; its members read all of them."""
    replicas: CoList
    contracts: CoList
    requests: CoList
    """The requests of an earlier release (`reside.alpha.finished_requests`)."""
    blocks: CoList
    replicas_by_account: CoMap
    direct_grants: CoMap
    cluster_settings: CoMap
    is_manager: Callable[[str, int], bool] = field(default=lambda _account, _at: False, repr=False)
    """Whether an edit of an account with this time (ms) counts. The default is for readers without Alpha's block."""

    def may_manage(self, account: str, at: int) -> bool:
        """Return whether an edit of this account to a management map counts; `at` is its time in ms."""
        return account == self.node.account_id or self.is_manager(account, at)


async def make_data(node: Node, public: Group, repository: str | None = None) -> AlphaData:
    """Create what is missing of Alpha's data, and open it. The caller holds Alpha's lock.

    Args:
        node: Alpha's node.
        public: Alpha's public group.
        repository: the identity repository if the data is created now; None: `OWN`.
    """
    root = await _root(node, public, repository)
    for member, title in _GROUPS.items():
        if member not in root:
            root.set(member, node.create_group(title).id)
    management = await _group(node, root, names.REPLICA_MANAGERS_GROUP)
    replicas = await _group(node, root, names.REPLICAS_GROUP)
    if replicas.id not in management.parents():
        await management.extend(replicas, "reader")
    if names.REPLICAS not in root:
        root.set(names.DEPENDANTS_LISTED, True)
    for member, owner in _LISTS.items():
        if member not in root:
            root.set(member, (await _group(node, root, owner) if owner else public).create_list().id)
    await open_requests.make_index(node, root, await _group(node, root, names.LOAD_REQUESTS_GROUP))
    for member, owner in _EMPTY_MAPS.items():
        if member not in root:
            root.set(member, (await _group(node, root, owner) if owner else public).create_map().id)
    if names.REPLICAS_BY_ACCOUNT not in root:
        root.set(names.REPLICAS_BY_ACCOUNT, replicas.create_map(await _accounts(node, root)).id)
    await node.flush()
    return await open_data(node, root)


async def _root(node: Node, public: Group, repository: str | None) -> CoMap:
    """Return the root map. Its first content settles the identity repository; a stranger may create it without any."""
    first = {names.IDENTITY_REPOSITORY: repository} if repository not in (None, OWN) else {}
    root = await node.unique_map(public, names.ROOT_NAME, first)
    if not root:
        root.update(first)
    return root


async def open_data(node: Node, root: CoMap) -> AlphaData:
    """Open Alpha's data.

    Raises:
        NotReady: it is incomplete.
    """
    missing = [member for member in (*_GROUPS, *_LISTS, *_MAPS) if member not in root]
    if missing:
        raise NotReady(f"Alpha's data has no {', '.join(missing)} yet: it is still being created")
    return AlphaData(
        node=node,
        root=root,
        public=root.group,
        replicas_group=await _group(node, root, names.REPLICAS_GROUP),
        requests_group=await _group(node, root, names.LOAD_REQUESTS_GROUP),
        stacks_group=await _group(node, root, names.STACKS_GROUP),
        secrets_group=await _group(node, root, names.SECRETS_GROUP),
        blocks_group=await _group(node, root, names.BLOCK_MANAGERS_GROUP),
        management_group=await _group(node, root, names.REPLICA_MANAGERS_GROUP),
        permissions_group=await _group(node, root, names.PERMISSION_MANAGERS_GROUP),
        replicas=await node.load_list(root[names.REPLICAS]),
        contracts=await node.load_list(root[names.CONTRACTS]),
        requests=await node.load_list(root[names.LOAD_REQUESTS]),
        blocks=await node.load_list(root[names.CONTROL_BLOCKS]),
        replicas_by_account=await node.load_map(root[names.REPLICAS_BY_ACCOUNT]),
        direct_grants=await node.load_map(root[names.DIRECT_GRANTS]),
        cluster_settings=await node.load_map(root[names.CLUSTER_SETTINGS]),
    )


def identity_repository(root: CoMap) -> str:
    """Return the cluster's identity repository (`reside.model.identities`); Alpha's root map never changes it."""
    found = root.get(names.IDENTITY_REPOSITORY)
    return found if isinstance(found, str) else OWN


def with_managers(data: AlphaData, is_manager: Callable[[str, int], bool]) -> AlphaData:
    """Return the data for a reader that knows whose edits of the configuration of replicas count."""
    return replace(data, is_manager=is_manager)


async def _group(node: Node, root: CoMap, member: str) -> Group:
    return await node.load_group(root[member])


async def _accounts(node: Node, root: CoMap) -> dict[str, int]:
    """Return the ids of all replicas by account, for a cluster of an earlier release."""
    replicas = [await node.load_map(co_id) for co_id in (await node.load_list(root[names.REPLICAS])).as_list()]
    return {replica["account"]: replica["id"] for replica in replicas}
