"""Every local cluster has its own index."""

import json
from pathlib import Path

import pytest

from reside.local import UsageError
from reside.local.allocation import INSTANCE_FILE, Allocation, IndexAllocator
from reside.local.layout import INDEXES


def allocate(folder: Path, state: Path, *, alone: bool = False) -> Allocation:
    return IndexAllocator(folder / "allocations").allocate(state.name, state, lambda _: True, control_plane_only=alone)


def test_two_states_get_two_indexes_and_keep_them(tmp_path: Path) -> None:
    first, second = allocate(tmp_path, tmp_path / "a"), allocate(tmp_path, tmp_path / "b")
    assert first.index != second.index
    assert allocate(tmp_path, tmp_path / "a") == first


def test_an_index_whose_network_is_in_use_is_skipped(tmp_path: Path) -> None:
    allocator = IndexAllocator(tmp_path / "allocations")
    allocation = allocator.allocate("a", tmp_path / "a", lambda index: index >= 5, control_plane_only=False)
    assert allocation.index == 5


def test_an_index_is_free_again_when_its_state_is_gone(tmp_path: Path) -> None:
    first = allocate(tmp_path, tmp_path / "a")
    (tmp_path / "a" / INSTANCE_FILE).unlink()
    assert allocate(tmp_path, tmp_path / "b").index == first.index


def test_a_released_index_is_free_but_only_its_owner_releases_it(tmp_path: Path) -> None:
    allocator = IndexAllocator(tmp_path / "allocations")
    first = allocate(tmp_path, tmp_path / "a")
    allocator.release(first.index, tmp_path / "stranger")
    assert allocate(tmp_path, tmp_path / "b").index != first.index
    allocator.release(first.index, tmp_path / "a")
    assert allocate(tmp_path, tmp_path / "c").index == first.index


def test_a_copied_state_folder_of_a_full_cluster_is_refused(tmp_path: Path) -> None:
    allocate(tmp_path, tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / INSTANCE_FILE).write_text((tmp_path / "a" / INSTANCE_FILE).read_text())
    with pytest.raises(UsageError, match="copied"):
        allocate(tmp_path, tmp_path / "b")


def test_a_control_plane_that_lost_its_index_gets_another(tmp_path: Path) -> None:
    first = allocate(tmp_path, tmp_path / "a", alone=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / INSTANCE_FILE).write_text((tmp_path / "a" / INSTANCE_FILE).read_text())
    assert allocate(tmp_path, tmp_path / "b", alone=True).index != first.index


def test_when_all_indexes_are_taken_the_error_says_where_to_look(tmp_path: Path) -> None:
    for index in INDEXES:
        state = tmp_path / f"s{index}"
        state.mkdir()
        content = {"name": state.name, "index": index, "control_plane_only": False}
        (state / INSTANCE_FILE).write_text(json.dumps(content))
        allocate(tmp_path, state)
    with pytest.raises(UsageError, match=str(tmp_path)):
        allocate(tmp_path, tmp_path / "one-too-many")
