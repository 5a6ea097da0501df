"""Read a whole contract into types, and write them in a language."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.build.contract_types.naming import TypeNames, comment
from reside.build.contract_types.schemas import Reader
from reside.build.language import Language
from reside.model.errors import InvalidManifest
from reside.model.manifest import ContractManifest, document

if TYPE_CHECKING:
    from reside.build.contract_types.kinds import Definition

_NOT_NAMES: Final = frozenset({"__proto__", "constructor", "prototype"})


@dataclass(frozen=True)
class Method:
    """A method; a type that the contract does not describe is None."""

    name: str
    title: str
    body: str | None
    returns: str | None


@dataclass(frozen=True)
class Permission:
    """A permission; `params` is None if the contract does not describe them."""

    name: str
    title: str
    params: str | None


@dataclass(frozen=True)
class ContractTypes:
    """The types of a contract, which the writers of all languages read."""

    identity: str
    definitions: tuple[Definition, ...]
    methods: tuple[Method, ...]
    permissions: tuple[Permission, ...]
    manifest: dict[str, Any]
    """The manifest's document without what only people and other languages need."""


def write_types(manifest: ContractManifest, language: Language) -> str:
    """Return the module with the types of a contract.

    Raises:
        InvalidManifest: a schema contains something that not all languages can represent; the message has its place.
    """
    from reside.build.contract_types import python, typescript  # noqa: PLC0415 - they read what is defined here

    types = read_types(manifest)
    return python.write(types) if language is Language.python else typescript.write(types)


def read_types(manifest: ContractManifest) -> ContractTypes:
    """Return the types of a contract.

    Raises:
        InvalidManifest: see `write_types`.
    """
    whole = _as_json(manifest)
    reader = Reader(TypeNames())
    methods = tuple(_method(reader, name, each) for name, each in whole.get("methods", {}).items())
    permissions = tuple(_permission(reader, name, each) for name, each in whole.get("permissions", {}).items())
    return ContractTypes(manifest.identity, tuple(reader.definitions), methods, permissions, _for_programs(whole))


def _as_json(manifest: ContractManifest) -> dict[str, Any]:
    """Return the document as JSON; a manifest that was read from YAML may contain other values."""
    try:
        text = json.dumps(document(manifest), allow_nan=False, ensure_ascii=False)
        text.encode()  # raises for lone surrogates
        found: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidManifest(f"the manifest of {manifest.identity} is not JSON: {error}") from None
    return found


def _method(reader: Reader, name: str, data: dict[str, Any]) -> Method:
    where = _named("methods", name)
    body, returns = (
        reader.read(data[part], name, part, where=f"{where}/{part}") if part in data else None
        for part in ("body", "returns")
    )
    return Method(name, _title(data), body, returns)


def _permission(reader: Reader, name: str, data: dict[str, Any]) -> Permission:
    where = _named("permissions", name)
    params = reader.read(data["params"], name, "params", where=f"{where}/params") if "params" in data else None
    return Permission(name, _title(data), params)


def _named(kind: str, name: str) -> str:
    if name in _NOT_NAMES:
        raise InvalidManifest(f"{kind}/{name}: JavaScript has no such member: rename it")
    return f"{kind}/{name}"


def _title(data: dict[str, Any]) -> str:
    return comment(data.get("displayInfo", {}).get("en", {}).get("title", ""))


def _for_programs(whole: dict[str, Any]) -> dict[str, Any]:
    def of(part: str, members: tuple[str, ...]) -> dict[str, Any]:
        return {
            name: {key: each[key] for key in members if each.get(key)} for name, each in whole.get(part, {}).items()
        }

    permissions, methods = of("permissions", ("instanceKeys", "params")), of("methods", ())
    return {"identity": whole["identity"], "permissions": permissions, "methods": methods}
