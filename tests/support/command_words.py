"""The commands that tests and pages run, as the words that are written there.

A command is a literal: a string, a list, a tuple or the arguments of a call, such as `reside("replica", "list", "-o",
form)`, in which `form` is a hole. A name that is assigned in the module or in the function stands for its value. The
strings of all parameters of a parametrised test are one command: it joins them.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Words = tuple[str, ...]

_ROOT: Final = Path(__file__).resolve().parents[2]
_PAGES: Final = ("README.md", "docs/tutorial.md")
"""The pages whose commands tests run as they are written."""
_HOLE: Final = "\0"
_MODULES: Final = {"reside.local": "local"}
"""Module → the command that `python -m MODULE` runs."""
_QUOTES: Final = "`'\""


@cache
def commands() -> tuple[Words, ...]:
    """Return all that could be a command in the tests, and in the pages that they follow."""
    found: list[Words] = []
    for path in sorted((_ROOT / "tests").rglob("test_*.py")):
        found += _of_module(ast.parse(path.read_text(encoding="utf-8")))
    for name in _PAGES:
        found += map(_words, _lines((_ROOT / name).read_text(encoding="utf-8")))
    return tuple(dict.fromkeys(words for words in found if words))


def names(words: Words, path: Sequence[str], options: Sequence[str] | None = None) -> bool:
    """Return whether words are a command with this path, and with one of these spellings of an option, if given."""
    size = len(path)
    for at in range(len(words) - size + 1):
        if words[at : at + size] == tuple(path):
            given = words[at + size :]
            if options is None or any(word.partition("=")[0] in options for word in given):
                return True
    return False


def _of_module(module: ast.Module) -> Iterator[Words]:
    known = _constants(module.body)
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        yield from _of_nodes(ast.walk(function), known | _constants(ast.walk(function)))
        calls = [each for each in function.decorator_list if isinstance(each, ast.Call) and len(each.args) > 1]
        # the last parameter of a parametrised test comes first: a decorator is nearer to the function then
        yield tuple(word for call in reversed(calls) for word in _of(call.args[1], known))
    yield from _of_nodes((each for node in module.body if node not in functions for each in ast.walk(node)), known)


def _constants(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Return what is assigned to names."""
    found: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def _of_nodes(nodes: Iterable[ast.AST], known: Mapping[str, ast.expr]) -> Iterator[Words]:
    for node in nodes:
        if isinstance(node, ast.Call):
            yield tuple(word for argument in node.args for word in _of(argument, known))
        elif isinstance(node, ast.List | ast.Tuple | ast.JoinedStr):
            yield tuple(_of(node, known))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from map(_words, _lines(node.value))


def _of(node: ast.expr, known: Mapping[str, ast.expr]) -> list[str]:
    """Return the words of an expression."""
    parts: Iterable[ast.expr] = ()
    match node:
        case ast.Name(id=name) if name in known:
            return _of(known[name], {each: value for each, value in known.items() if each != name})
        case ast.Constant(value=str(text)):
            return list(_words(text)) or [_HOLE]
        case ast.JoinedStr(values=values):
            text = "".join(str(each.value) if isinstance(each, ast.Constant) else _HOLE for each in values)
            return list(_words(text))
        case ast.Starred(value=value):
            parts = (value,)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            parts = elements
        case ast.Dict(keys=keys):
            parts = (key for key in keys if key is not None)
        case ast.BinOp(left=left, right=right):
            parts = (left, right)
        case ast.Subscript(value=value):
            parts = (value,)
        case _:
            return [_HOLE]
    return [word for each in parts for word in _of(each, known)]


def _lines(text: str) -> list[str]:
    return text.replace("\\\n", " ").splitlines()


def _words(text: str) -> Words:
    words = (word.strip(_QUOTES) for word in text.split())
    return tuple(_MODULES.get(word, word) for word in words)
