"""Strategies for contracts that anybody may have written, and for documents that fit their schemas or nearly do."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

EVIL = (
    "*/ process.exit(1) /*", '"""', "'''", "`${process.exit(1)}`", "\n", "\r", "\u2028", "\\", '\\"', "#", "//", "{}",
    "import", "class", "None", "self", "list", "Text", "Field", "model_config", "json", "z", "anything", "type", "a-b",
    "a b", "0", "", "ä", "😀", "😀😀", "__class__", "_a", "copy", "Body",
)  # fmt: skip
LARGEST = 2**53 - 1
texts = st.sampled_from(EVIL) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
names = texts.filter(lambda name: name not in {"__proto__", "constructor", "prototype", "toString", "valueOf"})
integers = st.integers(-LARGEST, LARGEST) | st.integers(-3, 3)
numbers = integers | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.5, 1.0, -2.0])
scalars = st.none() | st.booleans() | numbers | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2), max_leaves=4
)
notes = st.fixed_dictionaries({}, optional={"title": texts, "description": texts, "format": texts, "$comment": texts})


@st.composite
def limited(draw: st.DrawFn, kind: str, least: str, most: str, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Return a schema with two limits, or with one or none of them."""
    low, high = sorted((draw(values), draw(values)))
    kept = draw(st.sets(st.sampled_from((least, most))))
    return {"type": kind} | {key: value for key, value in ((least, low), (most, high)) if key in kept}


sizes = st.integers(0, 3)
leaves: st.SearchStrategy[Any] = st.one_of(
    st.just({}),
    st.just(True),
    st.just({"type": "null"}),
    st.just({"type": "boolean"}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": ["integer", "string"]}),
    st.just({"$ref": "#/$defs/shared"}),
    limited("string", "minLength", "maxLength", sizes),
    limited("integer", "minimum", "maximum", numbers),
    limited("integer", "exclusiveMinimum", "exclusiveMaximum", numbers),
    limited("number", "minimum", "maximum", numbers),
    limited("number", "exclusiveMinimum", "exclusiveMaximum", numbers),
    st.lists(texts, min_size=1, max_size=3, unique=True).map(lambda values: {"enum": values}),
    texts.map(lambda value: {"type": "string", "const": value}),
)


@st.composite
def with_notes(draw: st.DrawFn, schemas: st.SearchStrategy[Any]) -> Any:
    """Return a schema with annotations."""
    schema = draw(schemas)
    return schema if schema is True else {**schema, **draw(notes)}


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Return the schema of an object with known members, some of which have a default."""
    properties = draw(st.dictionaries(names, with_notes(inner), max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    for each in properties.values():
        if isinstance(each, dict) and each.get("type") == "boolean":
            each["default"] = draw(st.booleans())
    closed = draw(st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}]))
    return {"type": "object", "properties": properties, "required": required, **closed}


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.tuples(limited("array", "minItems", "maxItems", sizes), inner).map(lambda p: {**p[0], "items": p[1]})
    maps = inner.map(lambda of: {"type": "object", "additionalProperties": of})
    either = st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options})
    return objects(inner) | lists | maps | either


schemas = st.recursive(leaves, _wider, max_leaves=8)


@st.composite
def roots(draw: st.DrawFn) -> dict[str, Any]:
    """Return the schema of a body, a response or params."""
    shared = draw(leaves.filter(lambda each: each is True or "$ref" not in each) | st.just({"type": "string"}))
    return {**draw(objects(schemas)), "$defs": {"shared": shared}}


@st.composite
def contracts(draw: st.DrawFn) -> dict[str, Any]:
    """Return the manifest of a contract with one method and one permission."""
    title = {"displayInfo": {"en": {"title": draw(texts)}}}
    method = {"body": draw(roots()), "returns": draw(roots()), **title}
    permission = {"params": draw(roots()), **title}
    return {
        "type": "contract",
        "identity": "registry.example/contracts/evil.v1",
        "methods": {draw(names): method},
        "permissions": {draw(names): permission},
    }


def documents(schema: Any, root: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return documents that mostly fit a schema."""
    return st.one_of(_fitting(schema, root), _fitting(schema, root), anything)


def _fitting(schema: Any, root: dict[str, Any]) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one case for each form
    if schema is True or schema == {}:
        return anything
    if "$ref" in schema:
        return documents(root["$defs"]["shared"], root)
    if "anyOf" in schema:
        return st.one_of(*(documents(each, root) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    simple = {"null": st.none(), "boolean": st.booleans(), "string": texts, "integer": integers, "number": numbers}
    if isinstance(kind, list):
        return st.one_of(*(simple[each] for each in kind))
    if kind == "array":
        return st.lists(documents(schema["items"], root), max_size=3)
    if kind == "object" and "properties" in schema:
        members = {name: documents(each, root) for name, each in schema["properties"].items()}
        required = {name: each for name, each in members.items() if name in schema["required"]}
        optional = {name: each for name, each in members.items() if name not in schema["required"]}
        return st.tuples(
            st.fixed_dictionaries(required, optional=optional), st.sampled_from([{}, {}, {"extra": 1}])
        ).map(lambda parts: {**parts[0], **parts[1]})
    if kind == "object":
        return st.dictionaries(names, documents(schema["additionalProperties"], root), max_size=2)
    return simple.get(str(kind), anything)
