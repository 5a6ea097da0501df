"""Names of instances: DNS-1035, at most 40 characters, unique."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.model.errors import InvalidName
from reside.model.names import MAX_NAME, candidate_names, check_name, workload_name

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
def test_candidates_are_usable_and_differ(name: str, others: int) -> None:
    if name in ("jazz", "etcd"):
        return
    found = list(islice(candidate_names(name), others + 1))
    assert found[0] == name
    assert len(set(found)) == len(found)
    for candidate in found:
        assert check_name(candidate) == candidate
        assert len(candidate) <= MAX_NAME
        assert len(workload_name(candidate, 10**9)) <= 63
