"""Write the types of a contract as pydantic models, for `reside.replica`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from reside.build.contract_types.kinds import (
    Anything,
    Choice,
    Flag,
    Items,
    Mapping,
    Missing,
    Named,
    Null,
    Number,
    Record,
    Text,
    Union,
    is_nullable,
)
from reside.build.contract_types.naming import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.build.contract_types.contract import ContractTypes
    from reside.build.contract_types.kinds import Definition, Kind, Member

_HEAD: Final = '''\
# fmt: off
"""Written by `reside contract types`. Do not change it: write it again when the contract changes."""

'''
_IMPORTS: Final = (
    ("typing", ("Annotated", "Literal")),
    ("pydantic", ("Field",)),
    (
        "reside.replica.contract_types",
        ("Anything", "ContractModel", "Flag", "Integer", "Maybe", "Number", "Text", "contract"),
    ),
)
_WIDTH: Final = 110
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\"}
_RESERVED: Final = frozenset([*dir(BaseModel), "model_config", "dict", "list"]).union(*(each for _, each in _IMPORTS))


def write(types: ContractTypes) -> str:
    """Return the module."""
    defined = {each.name: each.kind for each in types.definitions}
    parts = [_definition(each, defined) for each in types.definitions]
    manifest = f"CONTRACT = contract({_lines(types.manifest, 0)})\n"
    body = "".join(f"\n\n{part}" for part in [*parts, manifest])
    return _HEAD + "\n\n".join(_imports(body)) + "\n" + body


def _imports(body: str) -> Iterator[str]:
    """Return the imports that a module needs, and perhaps some whose names occur in its texts."""
    words = frozenset(re.findall(r"\w+", body))
    for module, names in _IMPORTS:
        if used := [name for name in names if name in words]:
            yield f"from {module} import {', '.join(used)}"


def _definition(definition: Definition, defined: dict[str, Kind | Record]) -> str:
    kind = definition.kind
    if not isinstance(kind, Record):
        return f"{definition.name} = {_type(kind)}\n"
    names = attributes((each.name for each in kind.members), _RESERVED | defined.keys())
    lines = [f"    {names[each.name]}: {_member(each, names[each.name], defined)}\n" for each in kind.members]
    closed = ', extra="forbid"' if kind.closed else ""
    return f"class {definition.name}(ContractModel{closed}):\n" + "".join(lines or ["    pass\n"])


def _member(member: Member, attribute: str, defined: dict[str, Kind | Record]) -> str:
    type_, default = _type(member.kind), None
    if not isinstance(member.default, Missing):
        default = _literal(member.default)
    elif not member.required:
        default = "None"
        if not is_nullable(member.kind, defined):
            type_ = f"Maybe[{type_}]"
        elif isinstance(member.kind, Named):
            type_ = f"{type_} | None"
    if attribute != member.name:
        alias = f"alias={_literal(member.name)}"
        return f"{type_} = Field({alias if default is None else f'default={default}, {alias}'})"
    return type_ if default is None else f"{type_} = {default}"


def _type(kind: Kind) -> str:  # noqa: C901, PLR0911 - one case for each type
    match kind:
        case Named(name):
            return name
        case Union(options):
            return _union([each for each in options if each != Null()], nullable=Null() in options)
        case Items(of, least, most):
            return _with(f"list[{_type(of)}]", min_length=least, max_length=most)
        case Mapping(of):
            return f"dict[Text, {_type(of)}]"
        case Choice(values):
            return f"Literal[{', '.join(_literal(each) for each in values)}]"
        case Text(least, most):
            return _with("Text", min_length=least, max_length=most)
        case Number(whole, minimum, maximum, above, below):
            return _with("Integer" if whole else "Number", ge=minimum, le=maximum, gt=above, lt=below)
        case Flag():
            return "Flag"
        case Null():
            return "None"
        case Anything():
            return "Anything"


def _union(options: list[Kind], *, nullable: bool) -> str:
    several = len(options) > 1
    text = " | ".join(_type(each) for each in options)
    text = f'Annotated[{text}, Field(union_mode="left_to_right")]' if several else text
    return f"{text} | None" if nullable else text


def _with(type_: str, **limits: float | None) -> str:
    given = [f"{name}={_literal(value)}" for name, value in limits.items() if value is not None]
    return f"Annotated[{type_}, Field({', '.join(given)})]" if given else type_


def _literal(value: Any) -> str:
    """Return a literal of ASCII characters."""
    if not isinstance(value, str):
        return repr(value)
    return '"' + "".join(_character(each) for each in value) + '"'


def _character(each: str) -> str:
    if each in _ESCAPES:
        return _ESCAPES[each]
    if each.isascii() and each.isprintable():
        return each
    code = ord(each)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def _lines(value: Any, depth: int) -> str:
    """Return a JSON document as Python, over several lines where one would be too long."""
    if not isinstance(value, dict | list):
        return _literal(value)
    pairs = (
        [f"{_literal(name)}: {_lines(each, depth + 1)}" for name, each in value.items()]
        if isinstance(value, dict)
        else [_lines(each, depth + 1) for each in value]
    )
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    text = ", ".join(pairs)
    if depth and len(text) < _WIDTH and "\n" not in text:
        return f"{begin}{text}{end}"
    pad = "    " * (depth + 1)
    return begin + "\n" + "".join(f"{pad}{pair},\n" for pair in pairs) + "    " * depth + end
