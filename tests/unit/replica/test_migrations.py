"""Which migrations run, and which declarations of migrations are refused."""

from __future__ import annotations

from typing import Any

import pytest

from reside.model.errors import InvalidInput
from reside.model.manifest import ContractManifest
from reside.replica import Replica
from reside.replica.migrations import DataVersion, Migration, check_migrations, due

IDENTITY = "r.example/c.v1"


async def change(context: Any, data: Any) -> None:
    """Change nothing."""


@pytest.fixture
def replica() -> Replica:
    made = Replica(ContractManifest.model_validate({"type": "contract", "identity": IDENTITY}))

    @made.data(IDENTITY)
    async def create(context: Any) -> Any:
        """Create nothing."""

    return made


def test_data_without_a_stored_version_is_in_the_form_that_the_factory_creates() -> None:
    assert due(DataVersion.parse(None), {3: Migration(change), 2: Migration(change)}) == [2, 3]


def test_migrations_that_the_data_has_seen_do_not_run_again() -> None:
    declared = {version: Migration(change) for version in (2, 3, 4)}
    assert due(DataVersion(3), declared) == [4]
    assert due(DataVersion(4), declared) == []
    assert due(DataVersion(9), declared) == []


def test_a_stored_version_is_read_as_it_was_written() -> None:
    version = DataVersion().after(2, Migration(change, readable_by=2)).after(3, Migration(change))
    assert version == DataVersion(3, readable_by=2)
    assert DataVersion.parse(version.document()) == version


def test_a_missing_migration_is_named(replica: Replica) -> None:
    replica.migration(IDENTITY, 2)(change)
    replica.migration(IDENTITY, 4)(change)
    with pytest.raises(InvalidInput, match="has a migration 4, but none to version 3"):
        check_migrations(replica.declaration)
    replica.migration(IDENTITY, 3)(change)
    check_migrations(replica.declaration)


def test_migrations_of_a_contract_without_data_are_refused() -> None:
    replica = Replica(ContractManifest.model_validate({"type": "contract", "identity": IDENTITY}))
    replica.migration(IDENTITY, 2)(change)
    with pytest.raises(InvalidInput, match="has migrations, but no data"):
        check_migrations(replica.declaration)


def test_a_migration_declared_twice_is_refused(replica: Replica) -> None:
    replica.migration(IDENTITY, 2)(change)
    with pytest.raises(InvalidInput, match="is declared twice"):
        replica.migration(IDENTITY, 2)


@pytest.mark.parametrize(("version", "readable_by"), [(1, 1), (0, 1), (2, 3), (2, 0)])
def test_an_impossible_version_is_refused(replica: Replica, version: int, readable_by: int) -> None:
    with pytest.raises(InvalidInput, match=f"migration {version} of"):
        replica.migration(IDENTITY, version, readable_by=readable_by)


def test_a_contract_that_the_replica_does_not_implement_is_refused(replica: Replica) -> None:
    with pytest.raises(InvalidInput, match="is not implemented"):
        replica.migration("r.example/other.v1", 2)
