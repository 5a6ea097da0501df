"""Identifiers for names that anybody may have chosen: nothing but ASCII letters and digits, and each only once."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST: Final = 60
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_VERSION: Final = re.compile(r"\.v[0-9]+$")
_TYPES: Final = frozenset(
    (
        *("Annotated", "Any", "Anything", "ContractModel", "Field", "Flag", "Integer", "Literal", "Maybe", "Number"),
        *("CONTRACT", "False", "None", "Text", "True"),  # up to here of Python, from here on of TypeScript
        *("Array", "ArrayBuffer", "BigInt", "Boolean", "DataView", "Date", "Error", "Function", "Infinity", "Intl"),
        *("Iterator", "JSON", "Map", "Math", "NaN", "Object", "Promise", "Proxy", "Reflect", "RegExp", "Set", "String"),
        *("Symbol", "WeakMap", "WeakSet"),
    )
)
_WORDS_OF_TYPESCRIPT: Final = frozenset(
    (
        *("abstract", "any", "anything", "arguments", "as", "async", "await", "boolean", "break", "case", "catch"),
        *("class", "const", "constructor", "continue", "contract", "debugger", "declare", "default", "delete", "do"),
        *("else", "enum", "eval", "export", "extends", "false", "finally", "for", "from", "function", "get", "if"),
        *("implements", "import", "in", "infer", "instanceof", "interface", "is", "keyof", "let", "module", "never"),
        *("namespace", "new", "null", "number", "object", "of", "package", "private", "protected", "public"),
        *("readonly", "require", "return", "set", "static", "string", "super", "switch", "symbol", "this", "throw"),
        *("true", "try", "type", "typeof", "undefined", "unique", "unknown", "var", "void", "while", "with", "yield"),
        "z",
    )
)


class TypeNames:
    """Names of types, the same in all languages."""

    def __init__(self) -> None:
        self._taken = set(_TYPES)

    def take(self, parts: Iterable[str]) -> str:
        """Return a name in PascalCase that was not taken yet."""
        words = (word for part in parts for word in _WORD.findall(part))
        stem = "".join(word[0].upper() + word[1:] for word in words)[:_LONGEST]
        stem = stem if stem and not stem[0].isdigit() else f"T{stem}"
        name, number = stem, 2
        while name in self._taken:
            name, number = f"{stem}{number}", number + 1
        self._taken.add(name)
        return name


def constant(identity: str) -> str:
    """Return the name of the contract's constant in TypeScript: that of its image in camelCase."""
    words = _WORD.findall(_VERSION.sub("", identity.rpartition("/")[2]))
    name = "".join(word[0].upper() + word[1:] for word in words)[:_LONGEST]
    name = name[:1].lower() + name[1:]
    if not name or name[0].isdigit() or name in _WORDS_OF_TYPESCRIPT:
        return f"{name if name[:1].isalpha() else 'the' + name}Contract"
    return name


def attributes(names: Iterable[str], reserved: Iterable[str]) -> dict[str, str]:
    """Return the attribute of a Python class for each member.

    It is the member's name, unless that is no identifier, or already means something in the class.
    """
    given = list(names)
    taken = {*reserved, *given}
    found = {}
    for name in given:
        if _is_attribute(name) and name not in reserved:
            found[name] = name
            continue
        stem = "_".join(_WORD.findall(name))[:_LONGEST]
        stem = stem if stem and not stem[0].isdigit() else f"member_{stem}".rstrip("_")
        attribute, number = f"{stem}_" if keyword.iskeyword(stem) or stem in taken else stem, 2
        while attribute in taken or keyword.iskeyword(attribute):
            attribute, number = f"{stem}_{number}", number + 1
        found[name] = attribute
        taken.add(attribute)
    return found


def _is_attribute(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def comment(text: str) -> str:
    """Return text that can't end a comment of one line, and shows nothing else than it is."""
    return "".join(each for each in text if each.isascii() and each.isprintable())[:100].strip()
