"""The model of a power loss: what was synced survives, under the names of synced folders."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from support.durable_files import DurableFiles

from reside.common.files import sync, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[DurableFiles]:
    (tmp_path / "volume").mkdir()
    found = DurableFiles(tmp_path / "volume")
    found.settle()
    with found.following():
        yield found
    found.close()


def left(disk: DurableFiles) -> dict[str, bytes]:
    return {str(path.relative_to(disk.folder)): path.read_bytes() for path in disk.folder.rglob("*") if path.is_file()}


def test_what_was_synced_with_its_name_survives(disk: DurableFiles) -> None:
    write_private(disk.folder / "synced", b"1")
    (disk.folder / "content only").write_bytes(b"2")
    sync(disk.folder / "content only")
    (disk.folder / "nothing").write_bytes(b"3")
    disk.lose_power()
    assert left(disk) == {"synced": b"1"}


def test_a_name_without_synced_content_is_empty(disk: DurableFiles) -> None:
    (disk.folder / "name only").write_bytes(b"1")
    sync(disk.folder)
    disk.lose_power()
    assert left(disk) == {"name only": b""}


def test_a_file_that_was_replaced_without_a_sync_is_the_one_before(disk: DurableFiles) -> None:
    write_private(disk.folder / "a", b"before")
    (disk.folder / "draft").write_bytes(b"after")
    (disk.folder / "draft").replace(disk.folder / "a")
    os.link(disk.folder / "a", disk.folder / "b")
    disk.lose_power()
    assert left(disk) == {"a": b"before"}


def test_what_nothing_guarantees_may_survive(disk: DurableFiles) -> None:
    found = set()
    for seed in range(20):
        write_private(disk.folder / "a", b"before")
        (disk.folder / "draft").write_bytes(b"after")
        (disk.folder / "draft").replace(disk.folder / "a")
        disk.lose_power(random.Random(seed))  # noqa: S311 - the same choices in each run
        found.add(left(disk)["a"])
    assert {b"before", b"after", b""} <= found
