"""What an account may declare is limited: texts, depth, numbers, sizes. Whatever it writes, one error is raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.jazz import Edit, SessionId
from reside.model.errors import InvalidInput, NotAllowed
from reside.sentinel.contract.desired_stacks import read_stack
from reside.sentinel.contract.limits import DEEPEST, LARGEST_OBJECT, MOST_OBJECTS, check_limits

OWNER = "co_zowner"
HALF = "\ud800"


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def config_map(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **more}


def members(*objects: Any, **more: Any) -> dict[str, Any]:
    return {"name": "demo", "owner": OWNER, "objects": list(objects), **more}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (members(config_map(data={"v": HALF})), "object 0 of the stack has text with half of a surrogate pair"),
        (members(config_map(data={HALF: "v"})), "half of a surrogate pair"),
        (members(config_map(), config_map(metadata={"name": HALF})), "object 1 of the stack has text"),
        (members(config_map(), owner=HALF), "member owner of the stack has text"),
        (members(**{HALF: 1, "name": HALF}), "member .* of the stack has text"),
        (members(config_map(spec=nested(DEEPEST))), f"deeper than {DEEPEST} levels"),
        (members(config_map(spec=nested(980))), f"deeper than {DEEPEST} levels"),
        (members(config_map(spec=nested(100_000))), f"deeper than {DEEPEST} levels"),
        (members(name=nested(980)), "member name of the stack is nested deeper"),
        ({"objects": {"a": nested(980)}}, "member objects of the stack is nested deeper"),
        (members(config_map(data={"v": "x" * LARGEST_OBJECT})), f"{LARGEST_OBJECT} are allowed"),
        (members(*[config_map()] * (MOST_OBJECTS + 1)), f"{MOST_OBJECTS} are allowed"),
        (members(config_map(spec={"n": float("inf")})), "largest double"),
        (members(config_map(spec={"n": 2**63})), "more than 64 bits"),
        (members(config_map(data={"v": [{}, False]})), r"object 0 of the stack has a list of maps.* at .*\.data\.v"),
        (members(config_map(data={"v": [None, "x"]})), r"\.data\.v"),
        (members(config_map(), config_map(a=[{"b": [["x"], {}]}])), r"object 1 of .*\.a\.0\.b"),
        (members(config_map(**{HALF[:0]: ["x", []]})), "of one type"),
    ],
    ids=range(18),
)
def test_what_is_beyond_a_limit_is_refused_with_the_limit(found: dict[str, Any], message: str) -> None:
    entry = Edit(OWNER, 0, SessionId(f"{OWNER}_session_zx"), "co_zmap", deleted=False)
    with pytest.raises(InvalidInput, match=message) as refused:
        read_stack("demo", entry, found, entry)
    str(refused.value).encode()


def test_what_is_just_within_the_limits_is_accepted() -> None:
    check_limits(members(config_map(spec=nested(DEEPEST - 1))))
    check_limits(members(config_map(a=[], b=[{}, {"x": 1}], c=["x", 1, True, 2.5], d=[["x"], []], e=[None, None])))
    check_limits(members(*[config_map()] * MOST_OBJECTS))
    room = LARGEST_OBJECT - len(json.dumps(config_map(data={"v": ""}), separators=(",", ":")))
    check_limits(members(config_map(data={"v": "x" * room})))


TEXT = st.text(st.characters(), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
OBJECT = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.just("v1") | JSON,
        "kind": st.sampled_from(["ConfigMap", "Secret"]) | JSON,
        "metadata": st.fixed_dictionaries({}, optional={"name": st.just("a") | JSON, "labels": JSON, "x": JSON}) | JSON,
        "data": JSON,
    },
)


@given(
    st.fixed_dictionaries(
        {},
        optional={"name": st.just("demo") | JSON, "owner": st.just(OWNER) | JSON, "objects": st.lists(OBJECT) | JSON},
    )
)
def test_any_json_is_either_a_stack_or_refused_with_a_text_that_can_be_written(found: dict[str, Any]) -> None:
    entry = Edit(OWNER, 0, SessionId(f"{OWNER}_session_zx"), "co_zmap", deleted=False)
    try:
        stack = read_stack("demo", entry, found, entry)
    except (InvalidInput, NotAllowed) as refused:
        str(refused).encode()
    else:
        assert len(stack.revision) == 64
        json.dumps(stack.document()).encode()
