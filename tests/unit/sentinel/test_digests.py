"""Digests: equal for equal objects whatever the order of their members, and possible for every object."""

from __future__ import annotations

import pytest

from reside.model.stacks import canonical
from reside.sentinel.objects.digests import digestible


def test_the_order_of_members_does_not_count() -> None:
    assert digestible({"b": {"d": 1, "c": 2}, "a": []}) == digestible({"a": [], "b": {"c": 2, "d": 1}})


@pytest.mark.parametrize("value", [{"a": 'é\u2028\x7f\t"', "ü": None}, [1, True, -3], {"\U0001f600": 1, "\uffff": 2}])
def test_it_is_canonical_json(value: object) -> None:
    assert digestible(value).decode() == canonical(value)


@pytest.mark.parametrize("value", ["\ud800", 2**70, {"a": {"b": 2**64}}])
def test_what_the_encoder_refuses_has_a_digest(value: object) -> None:
    assert digestible([value]) != digestible([])
