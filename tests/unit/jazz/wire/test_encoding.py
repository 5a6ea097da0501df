"""The encodings below hashes: canonical JSON, base58, base64."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.jazz import InvalidArgument, InvalidContent
from reside.jazz.wire.encoding import (
    b58decode,
    b58encode,
    b64decode,
    b64encode,
    compact_json,
    parse_each,
    parse_json,
    quote,
    stable_json,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (1.0, "1"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (123.456, "123.456"),
        (-2.5, "-2.5"),
        (2**53 + 1, "9007199254740992"),
        (10**400, "null"),
        (float("nan"), "null"),
        ("ü\u2028\x7f", '"ü\u2028\x7f"'),
        ("\ud800", '"\\ud800"'),
        ('a"\\\n\x01', '"a\\"\\\\\\n\\u0001"'),
        ({"b": 1, "a": [1, {"z": None}]}, '{"a":[1,{"z":null}],"b":1}'),
        ({"\uffff": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\uffff":1}'),
    ],
)
def test_canonical_json_is_what_javascript_prints(value: object, expected: str) -> None:
    assert stable_json(value) == expected


@pytest.mark.parametrize(
    "text", ["", "NaN", "[Infinity]", '{"a":-Infinity}', "[1,]", "\ufeff1", "[" * 100_000, b"\xff", "'a'"]
)
def test_a_text_that_javascript_would_not_parse_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidContent):
        parse_json(text)


def test_a_value_that_is_not_json_is_refused() -> None:
    for function in (stable_json, compact_json):
        with pytest.raises(InvalidArgument, match="not a JSON value"):
            function({"a": object()})


def test_not_a_number_becomes_null_in_what_is_written() -> None:
    assert compact_json([float("inf"), {"a": (float("nan"), 1.5)}]) == '[null,{"a":[null,1.5]}]'


def test_cipher_texts_are_quoted_unchanged() -> None:
    assert quote("encrypted_Uabc") == '"encrypted_Uabc"'
    assert quote('say "x"') == '"say \\"x\\""'


@given(st.binary(max_size=80))
def test_base58_and_base64_round_trip(data: bytes) -> None:
    assert b58decode(b58encode(data)) == data
    assert b64decode(b64encode(data)) == data
    assert b64decode(b64encode(data).rstrip("=")) == data


@pytest.mark.parametrize("text", ["0", "O", "l", "ä"])
def test_a_foreign_character_in_base58_is_refused(text: str) -> None:
    with pytest.raises(InvalidContent, match="base58"):
        b58decode(text)


def test_known_base58() -> None:
    assert b58encode(b"\0\0hello world") == "11StV1DL6CwTryKyV"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 + 1, "[9007199254740992]"),
        (-(2**53) - 1, "[-9007199254740992]"),
        (12345678901234567890123, "[1.2345678901234568e+22]"),
        (10**400, "[null]"),
        (-0.0, "[0]"),
        ({"a": [float("-inf"), 2**60 + 1]}, '[{"a":[null,1152921504606846976]}]'),
        ("\ud83d\ude00 \udc00", '["\U0001f600 \\udc00"]'),
        ("9007199254740993", '["9007199254740993"]'),
        ((1, True, None), "[[1,true,null]]"),
    ],
)
def test_written_json_equals_that_of_javascript(value: object, expected: str) -> None:
    assert compact_json([value]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9007199254740993", 9007199254740992),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ("1" * 5000, float("inf")),
        ("-1e400", float("-inf")),
        ('"9007199254740993"', "9007199254740993"),
        ('"\\ud83d\\ude00\\udc00"', "\U0001f600\udc00"),
        (b'{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_parsed_json_equals_that_of_javascript(text: str | bytes, expected: object) -> None:
    assert parse_json(text) == expected


@pytest.mark.parametrize(
    "text", ["", "NaN", "[Infinity]", "-Infinity", "[1,]", "{'a':1}", "\ufeff1", b"\xff", "[" * 100_000, "01"]
)
def test_json_that_javascript_refuses_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidContent, match="malformed"):
        parse_json(text)


def test_a_cycle_or_a_wrong_key_is_not_json() -> None:
    circle: list[object] = []
    circle.append(circle)
    for value in (circle, {"a": circle}, {float("nan"): 1}, {(): 1}):
        with pytest.raises(InvalidArgument, match="not a JSON value"):
            compact_json(value)
    with pytest.raises(InvalidArgument, match="keys must be texts"):
        stable_json({1: 2})


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_json)
def test_every_value_round_trips(value: object) -> None:
    assert parse_json(compact_json(value)) == value
    assert parse_json(stable_json(value)) == value


_TEXTS = st.text(alphabet=st.characters(exclude_categories=()))
_NUMBERS = st.integers() | st.floats() | st.sampled_from([1e16, 1e21, -0.0, 2**53, 2**53 + 1, 10**15 - 1, 10**15])
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner),
    max_leaves=12,
)


@given(_JSON)
def test_canonical_json_is_the_same_in_an_object_as_in_a_list(value: Any) -> None:
    """Objects with simple content are encoded by a faster path."""
    assert stable_json({"key": value}) == f'{{"key":{stable_json([value])[1:-1]}}}'


@given(_JSON)
def test_what_is_written_is_read_as_its_canonical_form(value: Any) -> None:
    assert stable_json([parse_json(compact_json(value))]) == stable_json([parse_json(stable_json([value]))[0]])


@given(st.lists(_JSON.map(lambda value: compact_json(value).encode()) | st.binary(max_size=20), max_size=5))
def test_texts_that_are_parsed_together_equal_those_parsed_alone(texts: list[bytes]) -> None:
    def alone(text: bytes) -> object:
        try:
            return parse_json(text)
        except InvalidContent:
            return None

    assert repr(parse_each(texts)) == repr([alone(text) for text in texts])


def test_a_text_can_not_extend_into_the_next_one() -> None:
    assert parse_each([b"[1],[2", b"3]", b'["ok"]']) == [None, None, ["ok"]]


def test_long_keys_of_a_forger_are_not_kept() -> None:
    """Received content is hashed before it is known to be a valid header."""
    stable_json({"é": 1, "è": 2})
    tracemalloc.start()
    try:
        for number in range(10):
            stable_json({f"é{number}" * 50_000: 1, "è": 2})
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
