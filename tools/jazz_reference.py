"""Write docs/jazz-api.md, the reference of `reside.jazz`, from the docstrings: `python tools/jazz_reference.py`.

Signatures are those of the source, so the page does not depend on the version of Python. A unit test fails if the page
is not what this program writes.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script's path does not contain the parent folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PAGE: Final = ROOT / "docs/jazz-api.md"
GUIDE: Final = ROOT / "docs/jazz.md"
PACKAGES: Final = ("reside.jazz", "reside.jazz.typed", "reside.jazz.server")
_SECTIONS: Final = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Class arguments": "Class arguments",
    "Raises": "Raises",
    "Returns": "Returns",
}
_HEAD: Final = f"""\
# reside.jazz: API reference

`python tools/jazz_reference.py` writes this page from the docstrings. [The guide]({GUIDE.name}) explains the package.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(line for name in PACKAGES for line in _package(name))])


def _package(name: str) -> Iterator[str]:
    module = import_module(name)
    yield f"## {name}\n"
    yield f"{_paragraphs(inspect.getdoc(module) or '')}\n"
    for public in sorted(module.__all__, key=lambda public: (public.casefold(), public)):
        yield from _entry(module, public)


def _entry(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    if inspect.isclass(value) and value.__module__.startswith("reside.jazz"):
        yield from _class(name, value)
    elif inspect.isfunction(value):
        yield f"### {_signature(_definition(value), name)}\n"
        yield f"{_text(value)}\n"
    else:
        yield f"### `{name}`\n"
        yield f"{_constant(value)}\n"


def _class(name: str, value: type) -> Iterator[str]:
    bases = [base.__name__ for base in value.__mro__[1:] if base.__name__ in _public_names()]
    yield f"### class `{name}`{f' ({bases[0]})' if bases else ''}\n"
    yield f"{_text(value)}\n"
    constructor = vars(value).get("__init__")
    if "Args:\n" in (value.__doc__ or "") and not is_dataclass(value) and constructor is not None:
        yield f"- {_signature(_definition(constructor), name)}\n"
    for member, found in _members(value):
        yield from _member(member, found)


def _public_names() -> frozenset[str]:
    return frozenset(name for package in PACKAGES for name in import_module(package).__all__)


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, with those of its bases that have no entry of their own."""
    seen: set[str] = set()
    for owner in value.__mro__:
        has_entry = owner is not value and owner.__name__ in _public_names()
        if has_entry or not owner.__module__.startswith("reside.jazz"):
            continue
        for name, found in vars(owner).items():
            if not name.startswith("_") and name not in seen and _is_documented(found):
                seen.add(name)
                yield name, found


def _member(name: str, found: Any) -> Iterator[str]:
    function = _function(found)
    definition = _definition(function)
    kind = "property " if isinstance(found, property) else ""
    if isinstance(found, property):
        shown = f"`{name}`" + (f" → `{ast.unparse(definition.returns)}`" if definition.returns else "")
    else:
        shown = _signature(definition, name)
    yield f"- {kind}{shown}\n"
    yield textwrap.indent(_text(function), "  ") + "\n"


def _function(found: Any) -> Any:
    if isinstance(found, property):
        return found.fget
    if isinstance(found, classmethod | staticmethod):
        return found.__func__
    return found if inspect.isfunction(found) else None


def _is_documented(found: Any) -> bool:
    function = _function(found)
    return function is not None and function.__doc__ is not None and function.__module__.startswith("reside.jazz")


def _definition(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TypeError(f"{function} is not a function")
    return node


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    arguments = node.args
    first = [*arguments.posonlyargs, *arguments.args][:1]
    if first and first[0].arg in ("self", "cls"):
        (arguments.posonlyargs or arguments.args).pop(0)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None and name == node.name else ""
    prefix = "await " if isinstance(node, ast.AsyncFunctionDef) and "AsyncIterator" not in returns else ""
    return f"`{prefix}{name}({ast.unparse(arguments)}){returns}`".replace("'", '"')


def _text(value: Any) -> str:
    return _paragraphs(inspect.getdoc(value) or "")


def _paragraphs(text: str) -> str:
    """Return a docstring as Markdown: its sections as lists."""
    parts = re.split(rf"^({'|'.join(_SECTIONS)}):\n", text, flags=re.MULTILINE)
    shown = [_code_blocks(parts[0].strip())]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        inside, _, after = _split_section(body)
        shown.append(f"{_SECTIONS[title]}:\n{_list(textwrap.dedent(inside))}")
        if after.strip():
            shown.append(_code_blocks(after.strip()))
    return "\n\n".join(part for part in shown if part)


def _split_section(body: str) -> tuple[str, str, str]:
    match = re.search(r"^\S", body, flags=re.MULTILINE)
    return (body, "", "") if match is None else (body[: match.start()], "", body[match.start() :])


def _list(body: str) -> str:
    items: list[str] = []
    for line in body.strip().splitlines():
        if items and (line.startswith(" ") or not line.strip()):
            items[-1] += f" {line.strip()}"
        else:
            items.append(line.strip())
    return "\n".join("- " + re.sub(r"^([A-Za-z_]+): ", r"`\1`: ", item) for item in items)


def _code_blocks(text: str) -> str:
    """Replace the literal blocks of reStructuredText (`::`) by fenced ones."""

    def fenced(match: re.Match[str]) -> str:
        return f":\n\n```python\n{textwrap.dedent(match[1]).strip()}\n```\n"

    return re.sub(r"::\n\n((?:(?: {4}.*)?\n?)+)", fenced, text).rstrip()


def _constant(value: Any) -> str:
    return f"`{value!r}`" if isinstance(value, str) else "A type alias."


if __name__ == "__main__":
    PAGE.write_text(page())
