"""What the user manager reads of Alpha's data: replicas, their contracts, their control blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.jazz import AccountId, CoId, InvalidArgument, ValueNotFound, WrongKind
from reside.model import lookup
from reside.model.alpha_contract import READ_REPLICAS, REPLICAS_BY_ACCOUNT
from reside.model.errors import InvalidInput, NotReady
from reside.model.manifest import ContractManifest, RequiredPermission
from reside.model.permission_checks import check_permission
from reside.replica import ControlBlock

if TYPE_CHECKING:
    from reside.jazz import CoMap, Node
    from reside.users.contract import Permission

_CONTRACT_MEMBERS: Final = ("identity", "displayInfo", "permissions", "methods")


@dataclass(frozen=True)
class Cluster:
    """Alpha's data, as far as `replica:read:all` lets it be read.

    Attributes:
        node: the reader's node.
        root: Alpha's root map.
        replicas: a map of the accounts of all replicas → their ids.
    """

    node: Node
    root: CoMap
    replicas: CoMap

    @classmethod
    async def open(cls, node: Node, root: CoMap) -> Cluster:
        """Open Alpha's data.

        Raises:
            NotReady: this account may not read replicas.
        """
        replicas = await node.load_map(CoId(root[REPLICAS_BY_ACCOUNT]))
        if replicas.group.my_role is None:
            raise NotReady(f"Alpha has not granted {READ_REPLICAS} yet: approve it for this replica")
        return cls(node, root, replicas)

    async def control_block(self, number: int) -> ControlBlock | None:
        """Open the control block of the replica with this id; None if it does not exist.

        Raises:
            NotReady: it can't be read yet.
        """
        target = await self._find(lookup.rcb_by_id(number))
        return None if target is None else await ControlBlock.open(self.node, target)

    async def check_person(self, account: str) -> None:
        """Check that an account exists, and is not that of a replica.

        Raises:
            InvalidInput: it is not.
        """
        if account in self.replicas:
            raise InvalidInput(
                f"{account} is the account of a replica: grant permissions to it with `reside permission grant`"
            )
        try:
            await self.node.load_account(AccountId(account))
        except (ValueNotFound, WrongKind, InvalidArgument) as error:
            raise InvalidInput(
                f"account {account} can't be found in this cluster: its owner must connect once, for example with "
                f"`reside replica list` ({error})"
            ) from None

    async def check(self, permission: Permission) -> Permission:
        """Check that the replica can grant a permission, as Alpha does; return it with its instance id.

        Raises:
            InvalidInput: the replica does not exist or does not implement the contract.
            LoadRefused: the contract has no such permission, or does not accept its params.
        """
        replica = await self._replica(permission.replica)
        implemented = await self._implementations(replica)
        entity = await self._find(lookup.contract_by_identity(permission.contract))
        if permission.contract not in implemented or entity is None:
            known = ", ".join(implemented) or "no contract"
            raise InvalidInput(
                f"replica {replica['name']} does not implement {permission.contract}; it implements {known}"
            )
        members = await self.node.load_map(CoId(entity))
        contract = ContractManifest.model_validate(
            {"type": "contract"} | {key: members[key] for key in _CONTRACT_MEMBERS if key in members}
        )
        asked = RequiredPermission(
            name=permission.permission, instance_id=permission.instance_id, params=permission.params
        )
        instance = check_permission(f"replica {replica['name']}", asked, contract)
        return permission.model_copy(update={"instance_id": instance})

    async def _replica(self, number: int) -> CoMap:
        target = await self._find(lookup.replica_by_id(number))
        if target is None:
            raise InvalidInput(f"replica {number} does not exist: see `reside replica list`")
        return await self.node.load_map(CoId(target))

    async def _implementations(self, replica: CoMap) -> list[str]:
        """Return the contracts that the current version of a replica implements."""
        for version_id in await self.node.load_list(CoId(replica["versions"])):
            version = await self.node.load_map(CoId(str(version_id)))
            if version.get("id") == replica.get("currentVersion"):
                return sorted(version["implementations"].values())
        return []

    async def _find(self, name: str) -> str | None:
        found = await self.node.find_unique_map(self.root.group.id, name)
        return None if found is None else lookup.target_of(found)
