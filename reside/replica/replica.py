"""The class with which a replica's code declares what the replica does, and runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from reside.model.errors import InvalidInput
from reside.replica.declaration import STRICT_WRITES, Declaration, PermissionHandlers
from reside.replica.migrations import FIRST, Migration
from reside.replica.typed_methods import adapt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    import httpx2

    from reside.jazz import WritePolicy
    from reside.model.manifest import ContractManifest
    from reside.replica.context import Context
    from reside.replica.declaration import DataFactory, LockUser, MainFunction, PermissionHandler
    from reside.replica.migrations import MigrationFunction
    from reside.replica.settings import ReplicaSettings

_Method = TypeVar("_Method", bound="Callable[..., Awaitable[Any]]")
_Data = TypeVar("_Data", bound="DataFactory")
_Migration = TypeVar("_Migration", bound="MigrationFunction")
_Main = TypeVar("_Main", bound="MainFunction")


class Replica:
    """One replica: the contracts that it implements, and the functions that implement them.

    Declaring has no side effects; nothing runs before `start`, `run` or `launch`.

    Args:
        contracts: the manifests of the contracts that it implements.
        writes: writes that its Jazz node refuses although the roles allow them; None: none. By default, back-dated
            writes of removed members and writes dated in the future.
        lock_user: the user with which it takes locks in etcd; None: the one that Alpha has put into its control block.
    """

    def __init__(
        self,
        *contracts: ContractManifest,
        writes: WritePolicy | None = STRICT_WRITES,
        lock_user: LockUser | None = None,
    ) -> None:
        implemented = {found.identity: found for found in (contract.resolved() for contract in contracts)}
        self.declaration = Declaration(contracts=implemented, writes=writes, lock_user=lock_user)

    def method(self, contract_identity: str, name: str) -> Callable[[_Method], _Method]:
        """Decorate the coroutine function that handles an RPC method of a contract.

        It takes the call, and may take the body as a pydantic model and return one (`reside.replica.typed_methods`).

        Raises:
            InvalidInput: the replica does not implement the contract, the method is unknown or declared twice, or the
                function takes other parameters.
        """
        contract = self.declaration.contract(contract_identity)
        if name not in contract.methods:
            raise InvalidInput(f"contract {contract_identity} has no method {name}")
        if (contract.identity, name) in self.declaration.methods:
            raise InvalidInput(f"method {name} of {contract_identity} is declared twice")

        def declare(handler: _Method) -> _Method:
            self.declaration.methods[contract.identity, name] = adapt(handler)
            return handler

        return declare

    def permission(
        self,
        contract_identity: str,
        name: str,
        *,
        granted: PermissionHandler | None = None,
        revoked: PermissionHandler | None = None,
        updated: PermissionHandler | None = None,
    ) -> None:
        """Declare the handlers for a permission of a contract that is granted or revoked, or whose params change.

        Without handlers a permission is only stored as granted, which is sufficient for `Call.require`.

        Raises:
            InvalidInput: the replica does not implement the contract, or the permission is unknown.
        """
        contract = self.declaration.contract(contract_identity)
        if name not in contract.permissions:
            raise InvalidInput(f"contract {contract_identity} has no permission {name}")
        self.declaration.permissions[contract.identity, name] = PermissionHandlers(granted, revoked, updated)

    def data(self, contract_identity: str) -> Callable[[_Data], _Data]:
        """Decorate the coroutine function that finds a contract's data map, or creates it.

        It runs at every start, so it must find what an earlier start has created (`ctx.node.unique_map`). What it
        creates stays as it is; changes of its form are migrations.

        Raises:
            InvalidInput: the replica does not implement the contract.
        """
        contract = self.declaration.contract(contract_identity)

        def declare(factory: _Data) -> _Data:
            self.declaration.data[contract.identity] = factory
            return factory

        return declare

    def migration(
        self, contract_identity: str, version: int, *, readable_by: int = FIRST
    ) -> Callable[[_Migration], _Migration]:
        """Decorate the coroutine function that makes this version of a contract's data of the version before.

        It runs once, at the first start of code that declares it, before the data is published; on new data, too. It
        takes the context and the data map, and holds the lock of the map: it opens no transaction on it. It must be
        idempotent, since it runs again if it was interrupted. See `reside.replica.migrations`.

        Pods of older code may still use the data, or use it again after a rollback. So add what new code needs with one
        version of the replica, and remove what old code needs with a later one.

        Args:
            contract_identity: identity of the contract.
            version: 2 for the first migration, and so on.
            readable_by: the oldest version of the data whose code can use it afterwards; older code is refused at its
                start, which also refuses a rollback to it.

        Raises:
            InvalidInput: the replica does not implement the contract, or the version is declared twice or impossible.
        """
        contract = self.declaration.contract(contract_identity)
        declared = self.declaration.migrations.setdefault(contract.identity, {})
        if version in declared:
            raise InvalidInput(f"migration {version} of {contract_identity} is declared twice")
        if version <= FIRST or not FIRST <= readable_by <= version:
            raise InvalidInput(
                f"migration {version} of {contract_identity}: versions begin with {FIRST + 1}, "
                f"and readable_by is from {FIRST} to the version, not {readable_by}"
            )

        def declare(function: _Migration) -> _Migration:
            declared[version] = Migration(function, readable_by)
            return function

        return declare

    def main(self, function: _Main) -> _Main:
        """Decorate the replica's own code; a oneshot replica has completed when it returns."""
        self.declaration.main = function
        return function

    def start(
        self, settings: ReplicaSettings, *, serve: bool = True, etcd: httpx2.AsyncBaseTransport | None = None
    ) -> AbstractAsyncContextManager[Context]:
        """Run everything but `main` in the current event loop while the block is open; then stop gracefully.

        Args:
            settings: the replica's settings.
            serve: whether to serve HTTP: RPC, probes and metrics.
            etcd: HTTP transport to etcd, such as that of `reside.testing`; None: the network.
        """
        from reside.replica.lifecycle import started  # noqa: PLC0415 - declaring needs no server, no Jazz

        return started(self.declaration, settings, serve=serve, etcd=etcd)

    async def run(self, settings: ReplicaSettings | None = None) -> None:
        """Start, run `main` (without one, serve until cancelled), and stop gracefully on SIGTERM.

        Args:
            settings: the replica's settings; None: read them from the environment.
        """
        from reside.replica.process import run  # noqa: PLC0415 - see start

        await run(self.declaration, settings)

    def launch(self, settings_type: type[ReplicaSettings] | None = None) -> NoReturn:
        """Run as a process with JSON logs. Exit code: 0 when done or stopped, 1 for an error, 2 for invalid settings.

        Args:
            settings_type: the settings to read from the environment; None: those that every replica needs.
        """
        from reside.replica.process import launch  # noqa: PLC0415 - see start

        launch(self.declaration, settings_type)
