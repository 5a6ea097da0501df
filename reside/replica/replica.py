"""The class that a replica's code is written on: declares what the replica does, and runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from reside.model.errors import InvalidInput
from reside.replica.declaration import Declaration, PermissionHandlers

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from reside.jazz import WritePolicy
    from reside.model.manifest import ContractManifest
    from reside.replica.context import Context
    from reside.replica.declaration import DataFactory, MainFunction, MethodHandler, PermissionHandler
    from reside.replica.settings import ReplicaSettings

_Method = TypeVar("_Method", bound="MethodHandler")
_Data = TypeVar("_Data", bound="DataFactory")
_Main = TypeVar("_Main", bound="MainFunction")


class Replica:
    """One replica: the contracts it implements and the functions that do so.

    Declaring has no side effects; nothing runs before `start`, `run` or `launch`.

    Args:
        contracts: The manifests of the contracts that it implements.
        writes: What its Jazz node refuses besides what the roles forbid; None for nothing.
    """

    def __init__(self, *contracts: ContractManifest, writes: WritePolicy | None = None) -> None:
        self.declaration = Declaration(contracts={contract.identity: contract for contract in contracts}, writes=writes)

    def method(self, contract_identity: str, name: str) -> Callable[[_Method], _Method]:
        """Decorate the coroutine function that answers an RPC method of a contract.

        Raises:
            InvalidInput: the contract is not implemented here, has no such method, or the method is declared already.
        """
        if name not in self.declaration.contract(contract_identity).methods:
            raise InvalidInput(f"contract {contract_identity} has no method {name}")
        if (contract_identity, name) in self.declaration.methods:
            raise InvalidInput(f"method {name} of {contract_identity} is declared twice")

        def declare(handler: _Method) -> _Method:
            self.declaration.methods[contract_identity, name] = handler
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
        """Say what to do when a permission of a contract is granted, revoked, or its params changed.

        Without handlers a permission is only noted as granted, which is all that `Call.require` needs.

        Raises:
            InvalidInput: the contract is not implemented here or has no such permission.
        """
        if name not in self.declaration.contract(contract_identity).permissions:
            raise InvalidInput(f"contract {contract_identity} has no permission {name}")
        self.declaration.permissions[contract_identity, name] = PermissionHandlers(granted, revoked, updated)

    def data(self, contract_identity: str) -> Callable[[_Data], _Data]:
        """Decorate the coroutine function that finds, or creates and migrates, a contract's data map.

        It runs at every start, so it must find what an earlier start made (`ctx.node.unique_map`).

        Raises:
            InvalidInput: the contract is not implemented here.
        """
        self.declaration.contract(contract_identity)

        def declare(factory: _Data) -> _Data:
            self.declaration.data[contract_identity] = factory
            return factory

        return declare

    def main(self, function: _Main) -> _Main:
        """Decorate the replica's own code; a oneshot replica is done when it returns."""
        self.declaration.main = function
        return function

    def start(self, settings: ReplicaSettings, *, serve: bool = True) -> AbstractAsyncContextManager[Context]:
        """Run everything but `main` in the current loop while the block is open; leaving it stops gracefully.

        Args:
            settings: who and where the replica is.
            serve: whether to listen on HTTP; without it there are no RPC, health and metrics.
        """
        from reside.replica.lifecycle import started  # noqa: PLC0415 - declaring needs no server, no Jazz

        return started(self.declaration, settings, serve=serve)

    async def run(self, settings: ReplicaSettings | None = None) -> None:
        """Start, run `main` (or, without one, serve until told to stop), and stop gracefully on SIGTERM.

        Args:
            settings: None reads them from the environment.
        """
        from reside.replica.process import run  # noqa: PLC0415 - see start

        await run(self.declaration, settings)

    def launch(self, settings_type: type[ReplicaSettings] | None = None) -> NoReturn:
        """Be the process: JSON logs, `run`, exit code 0 when done or stopped, 1 for an error, 2 for bad settings.

        Args:
            settings_type: what to read from the environment; None: what every replica needs.
        """
        from reside.replica.process import launch  # noqa: PLC0415 - see start

        launch(self.declaration, settings_type)
