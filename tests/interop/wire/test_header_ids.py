"""Ids of headers that no honest client writes: as the native code of cojson computes them, which servers use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from interop.javascript import JavaScript, javascript

from reside.jazz.errors import InvalidContent
from reside.jazz.wire.header_id import header_id

pytestmark = pytest.mark.anyio

OWNER = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(
    ["__proto__", "constructor", 'encrypted_U"x', "\U0001d4b3", "\uffee", "\x7f\u2028\x01"]
)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
RULESETS = st.one_of(
    st.fixed_dictionaries({"type": st.just("group"), "initialAdmin": TEXTS}, optional={"group": TEXTS, "x": JSON}),
    st.fixed_dictionaries(
        {"type": st.just("ownedByGroup"), "group": st.just(OWNER)}, optional={"restrictDeletion": JSON, "x": JSON}
    ),
    st.fixed_dictionaries({"type": st.just("unsafeAllowAll")}, optional={"group": TEXTS}),
    st.fixed_dictionaries({}, optional={"type": TEXTS, "group": TEXTS}),
)
HEADERS = st.fixed_dictionaries(
    {"type": st.just("comap") | TEXTS, "ruleset": RULESETS},
    optional={
        "meta": JSON,
        "uniqueness": JSON | TEXTS | st.dictionaries(TEXTS, TEXTS, max_size=3),
        "createdAt": st.none() | TEXTS | JSON,
        "unknown": JSON,
    },
)


def owned(**members: Any) -> dict[str, Any]:
    ruleset = {"type": "ownedByGroup", "group": OWNER}
    return {"type": "comap", "ruleset": ruleset, "meta": None, "uniqueness": "x"} | members


@pytest.fixture(scope="module")
async def driver() -> Any:
    """Yield one JavaScript client for all examples."""
    async with javascript() as made:
        yield made


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    header=owned(meta={"a": 1e21, "b": 1e300, "c": 5e-7, "d": 1.5, "e": 1e20, "f": 1e-5, "g": 123456.789, "h": 1e16})
)
@example(header=owned(meta={"a": 2**53 + 2, "b": 2**63, "c": 2**64, "d": -(2**63), "e": -(2**64), "f": 2**70}))
@example(header=owned(meta={"\U0001d4b3": 1, "\uffee": 2}))
@example(header=owned(uniqueness=-5))
@example(header=owned(uniqueness=2**63))
@example(header=owned(unknown=1))
@example(header=owned(meta={"a": -0.0}))
@given(header=HEADERS)
async def test_the_id_of_any_header_is_the_native_one(header: dict[str, Any], driver: JavaScript) -> None:
    theirs = await driver("headerId", header=header)
    try:
        ours: str | None = header_id(header)
    except InvalidContent:
        ours = None
    assert ours == theirs


@pytest.mark.parametrize("depth", [10, 90, 120, 127, 128, 129, 200, 5_000])
async def test_deep_nesting_is_accepted_to_the_same_depth(depth: int, driver: JavaScript) -> None:
    meta: Any = 1
    for _ in range(depth):
        meta = {"a": meta}
    theirs = await driver("headerId", header=owned(meta=meta)) if depth < 900 else None
    try:
        ours: str | None = header_id(owned(meta=meta))
    except InvalidContent:
        ours = None
    assert ours == theirs
