"""Migrations of a contract's data: each runs once, in the order of the versions, before the data is published.

The factory of the data creates version 1, and migration N makes version N of version N-1, also of new data. The version
that is stored is a member of the unique map `data-versions` in the group of the profile, which only the replica's
account can write. Its key names the contract and the data map, so other data of the contract has a version of its own.

Invariants: a migration holds the lock of the data map, so of several pods that start together one migrates, and
transactions on the map wait. Its writes reach the sync server before the version is stored. So a migration that was
interrupted runs again from its beginning, and must be idempotent.

A pod whose code is older than the data starts, since pods of the version before run and restart during a rollout, and
run again after a rollback. It changes no version. It is refused if a migration says so (`readable_by`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from reside.common.transience import is_transient, safe_text
from reside.model.errors import Conflict, InvalidInput, NotReady, ResideError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.jazz import CoMap
    from reside.replica.context import Context
    from reside.replica.declaration import Declaration

_log = structlog.get_logger(__name__)

VERSIONS_MAP: Final = "data-versions"
FIRST: Final = 1
"""The version that the factory creates."""
MigrationFunction = Callable[["Context", "CoMap"], Awaitable[None]]
"""Changes the data of a contract from the version before. It must be idempotent up to its end."""


@dataclass(frozen=True)
class Migration:
    """One declared migration.

    Attributes:
        function: what it does.
        readable_by: the oldest version of data whose code can use the data afterwards.
    """

    function: MigrationFunction
    readable_by: int = FIRST


@dataclass(frozen=True)
class DataVersion:
    """The version of data, and the oldest version whose code can use it."""

    version: int = FIRST
    readable_by: int = FIRST

    @classmethod
    def parse(cls, stored: Any) -> DataVersion:
        """Return what is stored; without anything, the version that the factory creates."""
        return cls() if stored is None else cls(int(stored["version"]), int(stored["readableBy"]))

    def document(self) -> dict[str, int]:
        """Return the form that is stored."""
        return {"version": self.version, "readableBy": self.readable_by}

    def after(self, version: int, migration: Migration) -> DataVersion:
        """Return the version of the data after a migration."""
        return DataVersion(version, max(self.readable_by, migration.readable_by))


def check_migrations(declaration: Declaration) -> None:
    """Raise unless the declared migrations make each version of the one before, of data that is declared.

    Raises:
        InvalidInput: a migration or the data is missing.
    """
    for contract, declared in declaration.migrations.items():
        if contract not in declaration.data:
            raise InvalidInput(f"{contract} has migrations, but no data: declare the function that creates it")
        for expected, version in enumerate(sorted(declared), FIRST + 1):
            if version != expected:
                raise InvalidInput(f"{contract} has a migration {version}, but none to version {expected}: declare all")


def due(stored: DataVersion, declared: Mapping[int, Migration]) -> list[int]:
    """Return the numbers of the migrations that have to run, in order."""
    return sorted(version for version in declared if version > stored.version)


async def migrate(context: Context, contract: str, data: CoMap, declared: Mapping[int, Migration]) -> None:
    """Run the migrations that the data of a contract has not seen.

    Raises:
        Conflict: the code is older than the data, and can't use it.
        ResideError: a migration failed; the message has its number. It is transient (NotReady) if its cause is.
    """
    key = f"{contract}:{data.id}"
    versions = await context.node.find_unique_map(context.public.id, VERSIONS_MAP)
    stored = DataVersion.parse(None if versions is None else versions.get(key))
    _check_code(context, contract, stored, declared)
    if not due(stored, declared):
        return
    async with context.transaction(data.id) as tx:
        versions = await context.node.unique_map(context.public, VERSIONS_MAP)
        stored = DataVersion.parse(versions.get(key))
        _check_code(context, contract, stored, declared)
        for version in due(stored, declared):
            began = time.monotonic()
            try:
                await tx.run_exclusively(partial(declared[version].function, context, data))
            except Exception as error:
                kind = NotReady if is_transient(error) else ResideError
                raise kind(f"migration {version} of the data of {contract} failed: {safe_text(error)}") from error
            stored = stored.after(version, declared[version])
            tx.stage(partial(versions.set, key, stored.document()))
            seconds = round(time.monotonic() - began, 3)
            _log.info("data migrated", replica=context.name, contract=contract, version=version, seconds=seconds)


def _check_code(context: Context, contract: str, stored: DataVersion, declared: Mapping[int, Migration]) -> None:
    known = max(declared, default=FIRST)
    if known < stored.readable_by:
        raise Conflict(
            f"the data of {contract} has version {stored.version}, and only code that knows version "
            f"{stored.readable_by} can use it; this code of {context.name} knows {known}: load a newer one"
        )
    if known < stored.version:
        _log.warning(
            "the data is newer than this code",
            replica=context.name,
            contract=contract,
            version=stored.version,
            known=known,
        )
