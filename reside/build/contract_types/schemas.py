"""Read JSON Schemas into types; refuse what a language can't represent, with the keyword and its place.

Understood are: `type` (one or several), `properties`, `required`, `additionalProperties`, `items`, `minItems`,
`maxItems`, `minLength`, `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `enum` and `const`
of strings, `anyOf`, `$ref` to `$defs` without recursion, and `default` of optional members. Annotations are ignored,
which includes `format`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard

import jsonschema_rs

from reside.build.contract_types.kinds import (
    Anything,
    Choice,
    Definition,
    Flag,
    Items,
    Kind,
    Mapping,
    Member,
    Named,
    Null,
    Number,
    Record,
    Text,
    union,
)
from reside.model.errors import InvalidManifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.build.contract_types.naming import TypeNames

Schema = dict[str, Any]
MAX_DEPTH: Final = 32
MAX_TYPES: Final = 5_000
"""Types in one contract, each use counted."""
_LARGEST: Final = 2**53 - 1
_ANNOTATIONS: Final = frozenset(
    (
        *("$comment", "$schema", "default", "deprecated", "description"),
        *("examples", "format", "readOnly", "title", "writeOnly"),
    )
)
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_OF_TYPE: Final = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "enum", "const"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}
_REFERENCE: Final = re.compile(r"#/(\$defs|definitions)/([^/]+)")
_NO_MEMBERS: Final = frozenset(
    (
        *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__", "constructor"),
        *("hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"),
    )
)
"""Names that every object has in JavaScript."""


class Reader:
    """Reads the schemas of one contract, and collects the types that they define.

    Attributes:
        definitions: the types, each after those that it uses.
        defined: the same, by name.
    """

    def __init__(self, names: TypeNames) -> None:
        self.definitions: list[Definition] = []
        self.defined: dict[str, Kind | Record] = {}
        self._names = names
        self._count = 0

    def read(self, schema: Schema, *parts: str, where: str) -> str:
        """Return the name of the type of an object.

        Args:
            schema: the schema, whose root describes an object.
            parts: what the name is made of.
            where: place of the schema in the manifest, for errors.

        Raises:
            InvalidManifest: the schema is invalid, or contains something that not all languages can represent.
        """
        if schema.get("type") != "object":
            raise InvalidManifest(f'{where}: "type" must be "object", so that members can be added later')
        return _Document(self, schema).object(schema, parts, where, 0, is_root=True).name

    def define(self, kind: Kind | Record, parts: tuple[str, ...]) -> Named:
        """Give a type a name."""
        name = self._names.take(parts)
        self.definitions.append(Definition(name, kind))
        self.defined[name] = kind
        return Named(name)

    def count(self, where: str, depth: int) -> None:
        """Count a type.

        Raises:
            InvalidManifest: there are too many, or they are nested too deeply.
        """
        self._count += 1
        if self._count > MAX_TYPES or depth > MAX_DEPTH:
            limit = f"{MAX_TYPES} types" if self._count > MAX_TYPES else f"{MAX_DEPTH} levels"
            raise InvalidManifest(f"{where}: the contract has more than {limit}: simplify its schemas")


class _Document:
    """One schema with its definitions."""

    def __init__(self, reader: Reader, root: Schema) -> None:
        self._reader = reader
        self._root = root
        self._shared: dict[str, Named | Null | None] = {}
        self._prefix: tuple[str, ...] = ()

    def object(self, schema: Schema, parts: tuple[str, ...], where: str, depth: int, *, is_root: bool = False) -> Named:
        """Define the type of an object with known members."""
        if is_root:
            self._prefix = parts
            self._reader.count(where, depth)
        _check_keywords(schema, _OF_TYPE["object"] | {"type"} | (_DEFINITIONS if is_root else frozenset()), where)
        properties, required = _members(schema, where)
        rest = schema.get("additionalProperties", True)
        if not isinstance(rest, bool):
            _refuse(where, "additionalProperties", "it is a schema beside known members: use a member for these")
        members = [
            self._member(name, each, (*parts, name), f"{where}/properties/{name}", depth, required=name in required)
            for name, each in properties.items()
        ]
        return self._reader.define(Record(tuple(members), closed=not rest), parts)

    def _member(
        self, name: str, schema: Any, parts: tuple[str, ...], where: str, depth: int, *, required: bool
    ) -> Member:
        if name in _NO_MEMBERS:
            raise InvalidManifest(f"{where}: JavaScript has no such member: rename it")
        kind = self.kind(schema, parts, where, depth + 1)
        if required or not isinstance(schema, dict) or "default" not in schema:
            return Member(name, kind, required)
        return Member(name, kind, required, self._default(schema, where))

    def _default(self, schema: Schema, where: str) -> Any:
        value = schema["default"]
        if not isinstance(value, str | int | float | bool | None) or not (value is None or _is_literal(value)):
            _refuse(where, "default", "it is not a string, a number, a boolean or null")
        shared = {key: self._root[key] for key in _DEFINITIONS if key in self._root}
        try:
            fits = jsonschema_rs.validator_for({**schema, **shared}, retriever=_no_document).is_valid(value)
        except ValueError:  # a definition that is used nowhere may be no schema
            fits = False
        if not fits:
            _refuse(where, "default", "it does not match its own schema")
        return value

    def kind(self, schema: Any, parts: tuple[str, ...], where: str, depth: int) -> Kind:
        """Return the type that a schema describes."""
        self._reader.count(where, depth)
        if schema is True:
            return Anything()
        if not isinstance(schema, dict):
            raise InvalidManifest(f"{where}: this is not a schema: use an object")
        if "$ref" in schema:
            return self._reference(schema, where, depth)
        if "anyOf" in schema:
            return self._any_of(schema, parts, where, depth)
        if "type" not in schema:
            _check_keywords(schema, frozenset({"enum", "const"}), where)
            return _choice(schema, where) if schema.keys() & {"enum", "const"} else Anything()
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not types or not all(isinstance(each, str) and each in _OF_TYPE for each in types):
            _refuse(where, "type", f"it is not one of {', '.join(_OF_TYPE)}, or a list of these")
        _check_keywords(schema, frozenset({"type"}).union(*(_OF_TYPE[each] for each in types)), where)
        options = [self._typed(each, schema, parts, where, depth) for each in dict.fromkeys(types)]
        return union(options, self._reader.defined)

    def _typed(self, name: str, schema: Schema, parts: tuple[str, ...], where: str, depth: int) -> Kind:
        simple: dict[str, Callable[[], Kind]] = {
            "null": Null,
            "boolean": Flag,
            "string": lambda: _text(schema, where),
            "integer": lambda: _number(schema, where, whole=True),
            "number": lambda: _number(schema, where, whole=False),
        }
        if schema.keys() & {"enum", "const"} and name != "string":
            _refuse(where, "enum", "values are strings only: leave out the other types, or use anyOf")
        if name in simple:
            return simple[name]()
        if name == "array":
            least, most = _limits(schema, "minItems", "maxItems", where)
            of = self.kind(schema.get("items", True), (*parts, "item"), f"{where}/items", depth + 1)
            return Items(of, least, most)
        rest = schema.get("additionalProperties", True)
        if schema.keys() & {"properties", "required"} or rest is False:
            own = {key: value for key, value in schema.items() if key in _OF_TYPE["object"]}
            return self.object(own, parts, where, depth)
        return Mapping(self.kind(rest, (*parts, "value"), f"{where}/additionalProperties", depth + 1))

    def _any_of(self, schema: Schema, parts: tuple[str, ...], where: str, depth: int) -> Kind:
        _check_keywords(schema, frozenset({"anyOf"}), where)
        options = schema["anyOf"]
        if not isinstance(options, list) or not options:
            _refuse(where, "anyOf", "it is not a list of schemas")
        read = [
            self.kind(each, (*parts, f"option{number}"), f"{where}/anyOf/{number - 1}", depth + 1)
            for number, each in enumerate(options, 1)
        ]
        return union(read, self._reader.defined)

    def _reference(self, schema: Schema, where: str, depth: int) -> Kind:
        _check_keywords(schema, frozenset({"$ref"}), where)
        target = schema["$ref"]
        found = _REFERENCE.fullmatch(target) if isinstance(target, str) else None
        if found is None:
            _refuse(where, "$ref", "it is not of the form #/$defs/NAME")
        name = found[2].replace("~1", "/").replace("~0", "~")
        defined = self._root.get(found[1])
        if not isinstance(defined, dict) or name not in defined:
            _refuse(where, "$ref", "the schema does not define it")
        key = found[0]
        if key not in self._shared:
            self._shared[key] = None
            kind = self.kind(defined[name], (*self._prefix, name), f"{where}/$ref", depth + 1)
            parts = (*self._prefix, name)
            # a name of None is no type in Python
            self._shared[key] = kind if isinstance(kind, Named | Null) else self._reader.define(kind, parts)
        shared = self._shared[key]
        if shared is None:
            _refuse(where, "$ref", "the schema refers to itself: types have a limited depth")
        return shared


def _members(schema: Schema, where: str) -> tuple[dict[str, Any], set[str]]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict):
        _refuse(where, "properties", "it is not an object of schemas")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        _refuse(where, "required", "it is not a list of names")
    if unknown := sorted(set(required) - set(properties)):
        _refuse(where, "required", f"it names {unknown[0]!r}, which properties do not describe")
    return properties, set(required)


def _choice(schema: Schema, where: str) -> Kind:
    if "enum" in schema and "const" in schema:
        _refuse(where, "const", "it is beside enum: use one of them")
    key = "enum" if "enum" in schema else "const"
    values = schema["enum"] if key == "enum" else [schema["const"]]
    if not isinstance(values, list) or not values or not all(_is_text(each) for each in values):
        _refuse(where, key, "values are strings only")
    return Choice(tuple(dict.fromkeys(values)))


def _text(schema: Schema, where: str) -> Kind:
    least, most = _limits(schema, "minLength", "maxLength", where)
    if not schema.keys() & {"enum", "const"}:
        return Text(least, most)
    if least is not None or most is not None:
        _refuse(where, "minLength", "a length is beside the values: leave it out")
    return _choice(schema, where)


def _number(schema: Schema, where: str, *, whole: bool) -> Kind:
    bounds: dict[str, int | float | None] = {}
    for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        value = schema.get(key)
        if value is not None and (isinstance(value, str | bool) or not _is_literal(value)):
            _refuse(where, key, "it is not a number that every language reads alike")
        bounds[key] = value
    if whole:  # limits of integers are integers
        rounded = (math.ceil, math.floor, math.floor, math.ceil)
        bounds = {
            key: None if value is None else round_(value)
            for (key, value), round_ in zip(bounds.items(), rounded, strict=True)
        }
    return Number(whole, *bounds.values())


def _limits(schema: Schema, least: str, most: str, where: str) -> tuple[int | None, int | None]:
    for key in (least, most):
        value = schema.get(key)
        if key in schema and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST):
            _refuse(where, key, "it is not a size")
    return schema.get(least), schema.get(most)


def _is_literal(value: object) -> bool:
    """Return whether every language reads a literal as the same value."""
    if isinstance(value, float):
        return math.isfinite(value)
    return _is_text(value) or (isinstance(value, int) and abs(value) <= _LARGEST)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)


def _check_keywords(schema: Schema, known: frozenset[str], where: str) -> None:
    for key in schema:
        if key not in known and key not in _ANNOTATIONS:
            _refuse(where, key, "this keyword is not supported here: docs/contract-types.md lists those that are")


def _refuse(where: str, keyword: str, why: str) -> NoReturn:
    raise InvalidManifest(f"{where}: {keyword}: {why}")


def _no_document(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not in the contract's image")
