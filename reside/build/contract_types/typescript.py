"""Write the types of a contract as zod schemas, for `@reside/replica`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

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
)
from reside.build.contract_types.naming import constant

if TYPE_CHECKING:
    from reside.build.contract_types.contract import ContractTypes
    from reside.build.contract_types.kinds import Kind, Member, Scalar

_HEAD: Final = """\
// Written by `reside contract types`. Do not change it: write it again when the contract changes.
import { contract } from "@reside/replica";
import { z } from "zod";
"""
_ANYTHING: Final = """
const anything = z.unknown().refine((value) => value !== undefined, { error: "is missing" });
"""


def write(types: ContractTypes) -> str:
    """Return the module."""
    definitions = "".join(
        f"\nexport const {each.name} = {_schema(each.kind)};\nexport type {each.name} = z.output<typeof {each.name}>;\n"
        for each in types.definitions
    )
    helper = _ANYTHING if "anything" in _identifiers(types) else ""
    return f"{_HEAD}{helper}{definitions}\n{_contract(types)}"


def _contract(types: ContractTypes) -> str:
    lines = [f"export const {constant(types.identity)} = contract({{", f"  identity: {_literal(types.identity)},"]
    lines.append("  methods: {")
    for method in types.methods:
        body = method.body or "z.record(z.string(), z.unknown())"
        lines += [f"    // {method.title}"] * bool(method.title)
        lines.append(f"    {_literal(method.name)}: {{ body: {body}, returns: {method.returns or 'z.unknown()'} }},")
    lines += ["  },", "  permissions: {"]
    for permission in types.permissions:
        lines += [f"    // {permission.title}"] * bool(permission.title)
        params = f"{{ params: {permission.params} }}" if permission.params else "{}"
        lines.append(f"    {_literal(permission.name)}: {params},")
    return "\n".join([*lines, "  },", "});", ""])


def _schema(kind: Kind | Record) -> str:  # noqa: C901, PLR0911 - one case for each type
    match kind:
        case Record(members, closed):
            inner = "".join(f"  {_literal(each.name)}: {_member(each)},\n" for each in members)
            return f"z.{'strictObject' if closed else 'object'}({{\n{inner}}})"
        case Named(name):
            return name
        case Union(options):
            return f"z.union([{', '.join(_schema(each) for each in options)}])"
        case Items(of, least, most):
            return f"z.array({_schema(of)}){_limit('min', least)}{_limit('max', most)}"
        case Mapping(of):
            return f"z.record(z.string(), {_schema(of)})"
        case Choice(values):
            return f"z.literal([{', '.join(_literal(each) for each in values)}])"
        case Text(least, most):
            return f"z.string(){_length('>=', least)}{_length('<=', most)}"
        case Number(whole, minimum, maximum, above, below):
            limits = (("min", minimum), ("max", maximum), ("gt", above), ("lt", below))
            return f"z.{'int' if whole else 'number'}(){''.join(_limit(*limit) for limit in limits)}"
        case Flag():
            return "z.boolean()"
        case Null():
            return "z.null()"
        case Anything():
            return "anything"


def _member(member: Member) -> str:
    if member.required:
        return _schema(member.kind)
    if isinstance(member.default, Missing):
        return f"{_schema(member.kind)}.optional()"
    return f"{_schema(member.kind)}.default({_literal(member.default)})"


def _limit(name: str, value: float | None) -> str:
    return "" if value is None else f".{name}({_literal(value)})"


def _length(comparison: str, value: int | None) -> str:
    """Return the check of a length; JSON Schema counts code points, JavaScript counts UTF-16."""
    if value is None:
        return ""
    message = f"has not {'at least' if comparison == '>=' else 'at most'} {value} characters"
    return f".refine((text) => [...text].length {comparison} {value}, {{ error: {_literal(message)} }})"


def _literal(value: Scalar) -> str:
    """Return a literal of ASCII characters: those of JSON are those of JavaScript."""
    return json.dumps(value)


def _identifiers(types: ContractTypes) -> set[str]:
    """Return `anything` if a type needs it."""

    def has(kind: Kind | Record) -> bool:
        match kind:
            case Record(members):
                return any(has(each.kind) for each in members)
            case Union(options):
                return any(has(each) for each in options)
            case Items(of) | Mapping(of):
                return has(of)
            case _:
                return isinstance(kind, Anything)

    return {"anything"} if any(has(each.kind) for each in types.definitions) else set()
