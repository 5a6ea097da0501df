"""Every instance of the local cluster has its own number."""

import json
from pathlib import Path

import pytest

from reside.local import UsageError
from reside.local.claims import INSTANCE_FILE, Claims, Instance
from reside.local.layout import INDEXES


def claim(folder: Path, state: Path, *, alone: bool = False) -> Instance:
    return Claims(folder / "claims").claim(state.name, state, lambda _: True, control_plane_only=alone)


def test_two_states_get_two_numbers_and_keep_them(tmp_path: Path) -> None:
    first, second = claim(tmp_path, tmp_path / "a"), claim(tmp_path, tmp_path / "b")
    assert first.index != second.index
    assert claim(tmp_path, tmp_path / "a") == first


def test_a_number_whose_network_is_used_otherwise_is_passed_over(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    instance = claims.claim("a", tmp_path / "a", lambda index: index >= 5, control_plane_only=False)
    assert instance.index == 5


def test_a_number_is_free_again_when_its_state_is_gone(tmp_path: Path) -> None:
    first = claim(tmp_path, tmp_path / "a")
    (tmp_path / "a" / INSTANCE_FILE).unlink()
    assert claim(tmp_path, tmp_path / "b").index == first.index


def test_a_released_number_is_free_but_only_its_owner_releases_it(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    first = claim(tmp_path, tmp_path / "a")
    claims.release(first.index, tmp_path / "stranger")
    assert claim(tmp_path, tmp_path / "b").index != first.index
    claims.release(first.index, tmp_path / "a")
    assert claim(tmp_path, tmp_path / "c").index == first.index


def test_a_copied_state_folder_of_a_whole_cluster_is_refused(tmp_path: Path) -> None:
    claim(tmp_path, tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / INSTANCE_FILE).write_text((tmp_path / "a" / INSTANCE_FILE).read_text())
    with pytest.raises(UsageError, match="copied"):
        claim(tmp_path, tmp_path / "b")


def test_a_control_plane_that_lost_its_number_gets_another(tmp_path: Path) -> None:
    first = claim(tmp_path, tmp_path / "a", alone=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / INSTANCE_FILE).write_text((tmp_path / "a" / INSTANCE_FILE).read_text())
    assert claim(tmp_path, tmp_path / "b", alone=True).index != first.index


def test_when_all_numbers_are_taken_the_error_says_where_to_look(tmp_path: Path) -> None:
    for index in INDEXES:
        state = tmp_path / f"s{index}"
        state.mkdir()
        content = {"name": state.name, "index": index, "control_plane_only": False}
        (state / INSTANCE_FILE).write_text(json.dumps(content))
        claim(tmp_path, state)
    with pytest.raises(UsageError, match=str(tmp_path)):
        claim(tmp_path, tmp_path / "one-too-many")
