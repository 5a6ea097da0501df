"""JSON that nests deeper than Python's recursion limit, and JSON that nests too deeply."""

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.jazz import InvalidArgument, InvalidContent
from reside.jazz.wire.deep_json import MAX_NESTING, is_too_deep, map_scalars, parse_deep, write_deep
from reside.jazz.wire.encoding import compact_json, parse_each, parse_json, stable_json

if TYPE_CHECKING:
    from collections.abc import Callable

FORMS = {
    "array": ("[", "1", "]"),
    "object": ('{"a":', "1", "}"),
    "both": ('[{"a":', "1", "}]"),
    "with a large number": ("[", "12345678901234567890", "]"),
    "with half a surrogate pair": ('{"\\ud800":', '"\\ud800"', "}"),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3), parts, max_size=3),
    max_leaves=12,
)


def _nested(form: str, levels: int) -> str:
    opening, inner, closing = FORMS[form]
    count = levels // len([sign for sign in opening if sign in "[{"])
    return opening * count + inner + closing * count


def _innermost(value: Any) -> Any:
    while isinstance(value, list | dict) and value:
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
    return value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("levels", [1000, MAX_NESTING])
def test_json_of_a_thousand_levels_is_read_and_written(form: str, levels: int) -> None:
    text = _nested(form, levels)
    value = parse_json(text)
    assert _innermost(parse_each([text.encode()])[0]) == _innermost(value)
    for written in (compact_json(value), stable_json(value)):
        assert _innermost(parse_json(written)) == _innermost(value)
        assert written.count("[") + written.count("{") == levels


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("levels", [MAX_NESTING + 2, 3000, 100_000])
def test_deeper_json_is_refused(form: str, levels: int) -> None:
    with pytest.raises(InvalidContent, match="malformed"):
        parse_json(_nested(form, levels))
    assert parse_each([_nested(form, levels).encode()]) == [None]
    value: Any = 1.5
    for _ in range(levels):
        value = {"a": value} if form == "object" else [value]
    for write in (compact_json, stable_json):
        with pytest.raises(InvalidArgument, match="more than 1024 levels"):
            write(value)


def _parsed(text: str) -> Any:
    return parse_deep(text, json.loads)


@given(JSON, st.sampled_from([None, 1]))
def test_the_parser_without_recursion_reads_what_any_other_reads(value: Any, indent: int | None) -> None:
    assert _parsed(json.dumps(value, indent=indent)) == value


@given(st.text(alphabet='[]{},:"1 atrue', max_size=9))
def test_the_parser_without_recursion_refuses_what_any_other_refuses(text: str) -> None:
    try:
        expected = [json.loads(text)]
    except ValueError:
        expected = []
    try:
        found = [_parsed(text)]
    except ValueError:
        found = []
    assert found == expected


@given(JSON, st.booleans())
def test_the_writer_without_recursion_writes_what_any_other_writes(value: Any, indented: bool) -> None:
    write: Callable[[Any], str] = json.dumps
    expected = json.dumps(value, indent=2) if indented else json.dumps(value, separators=(",", ":"))
    assert write_deep(value, scalar=write, key=write, indented=indented) == expected


@given(JSON)
def test_a_copy_keeps_everything_but_the_scalars(value: Any) -> None:
    assert map_scalars(value, lambda item: item) == value
    counted = map_scalars(value, lambda _: 0)
    assert json.dumps(counted).count("[") == json.dumps(map_scalars(value, lambda _: None)).count("[")


@pytest.mark.parametrize("levels", [MAX_NESTING, MAX_NESTING + 1])
def test_levels_are_counted_only_where_there_are_many_openings(levels: int) -> None:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    assert is_too_deep(value, levels) is (levels > MAX_NESTING)
    assert not is_too_deep([[]] * (MAX_NESTING + 1), MAX_NESTING + 2)
