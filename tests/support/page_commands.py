"""The commands that pages of documentation name, in fences and between backticks, compared with the code.

In a form such as `reside build FOLDER [--push]`, brackets and `…` leave the rest of the command open.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup
from typer.main import get_command

from reside.cli.main import PARTS, command

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`]+)`")
_SUBSTITUTION = re.compile(r"[$<]\(((?:[^()]|\([^()]*\))*)\)")
_OPERATORS = {"&&", "||", "|", ";", ">", ">>", "<", "\\"}
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_COMPLETED = re.compile(r"[\]…]|\.\.\.$|^\(")
PROGRAMS = ("reside", "make")


@dataclass(frozen=True)
class Named:
    """A command as a page names it: its place, and its words. In a form, words may be missing."""

    place: str
    words: tuple[str, ...]
    is_form: bool


def fences(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the language and the content of each fence of a page."""
    for match in _FENCE.finditer(text):
        yield text.count("\n", 0, match.start()) + 2, match[1], match[2]


def named(page: str, text: str) -> Iterator[Named]:
    """Yield the commands that a page names."""
    for line, language, content in fences(text):
        if language in ("", "sh"):
            joined = content.replace("\\\n", "  ")
            for number, row in enumerate(joined.splitlines()):
                yield from _of_line(f"{page}:{line + number}", row, is_form=language == "")
    prose = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    for match in _CODE.finditer(prose):
        place = f"{page}:{prose.count(chr(10), 0, match.start()) + 1}"
        yield from _of_line(place, " ".join(match[1].split()).replace("\\|", "|"), is_form=True)


def _of_line(place: str, line: str, *, is_form: bool) -> Iterator[Named]:
    for inner in _SUBSTITUTION.findall(line):
        yield from _of_line(place, inner, is_form=is_form)
    try:
        words = shlex.split(_SUBSTITUTION.sub("X", line), comments=True)
    except ValueError:  # prose between backticks
        return
    found: list[str] = []
    for word in [*words, ";"]:
        if word in _OPERATORS or word.endswith(";"):
            yield from _command(
                place, [*found, word.rstrip(";")] if word.endswith(";") and word != ";" else found, is_form
            )
            found = []
        else:
            found.append(word)


def _command(place: str, words: list[str], is_form: bool) -> Iterator[Named]:
    while words and (_ASSIGNMENT.match(words[0]) or words[0] == "$"):
        words = words[1:]
    if words and words[0] in PROGRAMS:
        yield Named(place, tuple(words), is_form)


@cache
def _tree(part: str) -> Any:
    return get_command(command([part])).commands[part]  # type: ignore[attr-defined] # it is a group


def fault(found: Named, targets: set[str]) -> str | None:
    """Return what is wrong with a command; None if the code has it."""
    program, *words = found.words
    if program == "make":
        wrong = [word for word in words if "=" not in word and not _COMPLETED.search(word) and word not in targets]
        return f"make has no target {wrong[0]}" if wrong else None
    return _fault(words, found.is_form)


def _fault(words: list[str], is_form: bool) -> str | None:
    if not words or words[0].startswith("-") or _is_open(words[0]):
        return None
    if words[0] not in PARTS:
        return f"reside has no command {words[0]}"
    here, path, rest = _tree(words[0]), f"reside {words[0]}", words[1:]
    while isinstance(here, TyperGroup):
        if not rest:
            return None if is_form else f"{path} needs a command"
        if _is_open(rest[0]) or rest[0] in ("--help", "-h"):
            return None
        names = rest[0].split("|")
        missing = [name for name in names if name not in here.commands]
        if missing:
            return f"{path} has no command {missing[0]}"
        here, path, rest = here.commands[names[0]], f"{path} {rest[0]}", rest[1:]
    return _wrong_option(here, path, rest) or (None if is_form else _wrong_arguments(here, path, rest))


def _is_open(word: str) -> bool:
    return bool(_COMPLETED.search(word)) or word.startswith("[")


def _wrong_option(leaf: Any, path: str, words: list[str]) -> str | None:
    known = {name for each in leaf.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    for word in words:
        name = word.strip("[]").partition("=")[0]
        if re.fullmatch(r"--?[a-z][a-z-]*", name) and name not in known:
            return f"{path} has no option {name}"
    return None


def _wrong_arguments(leaf: Any, path: str, words: list[str]) -> str | None:
    """Return what the parser of the command says to the words; it reads no files."""
    import click  # noqa: PLC0415 - typer's own, only here

    context = leaf.context_class(leaf, info_name=path, resilient_parsing=False)
    try:
        values, rest, _ = leaf.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        return f"{path}: {error.format_message()}"
    missing = [
        each.name for each in leaf.params if each.required and not each.envvar and values.get(each.name) in (None, ())
    ]
    if rest or missing:
        return f"{path}: {'too many arguments' if rest else f'{missing[0]} is missing'}"
    return None
