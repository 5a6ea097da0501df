"""Names of instances: DNS-1035, at most 40 characters, unique."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.model.errors import InvalidName
from reside.model.names import MAX_NAME, check_name, free_name, workload_name

NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize("name", ["a", "greeter", "a-1", "x" * 40])
def test_usable_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "1a", "A", "a-", "-a", "a_b", "a.b", "x" * 41, "é"])
def test_names_that_kubernetes_would_refuse(name: str) -> None:
    with pytest.raises(InvalidName, match="is invalid"):
        check_name(name)


@pytest.mark.parametrize("name", ["jazz", "etcd", "platform", "kubernetes"])
def test_names_of_the_platform(name: str) -> None:
    with pytest.raises(InvalidName, match="is reserved for the platform"):
        check_name(name)


@given(NAMES, st.integers(0, 30))
def test_a_free_name_is_usable_and_not_taken(name: str, others: int) -> None:
    taken: set[str] = set()
    if name in ("jazz", "etcd"):
        return
    for _ in range(others + 1):
        found = free_name(name, taken)
        assert found not in taken
        assert check_name(found) == found
        assert len(workload_name(found, 10**9)) <= 63
        taken.add(found)
    assert len(found) <= MAX_NAME
