"""Write reside/cli/declarations.json, with which `reside` shows help without its code, from the code."""

from __future__ import annotations

import json
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from typer.core import TyperGroup

from reside.cli.declarations import CODE, PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES: Final = (str, int, float, bool)


def text(groups: Mapping[str, Any]) -> str:
    """Return the file's content.

    Args:
        groups: name → the group or the command, as typer makes it.
    """
    found = [entry for name, group in groups.items() for entry in _entries(name, group)]
    lines = (f"{json.dumps(path)}: {json.dumps(declared, ensure_ascii=False)}" for path, declared in found)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _entries(path: str, found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(found, TyperGroup):
        yield path, {"help": found.help or ""}
        for name, inner in found.commands.items():
            yield from _entries(f"{path} {name}", inner)
    else:
        parameters = [_parameter(each) for each in found.params]
        yield path, {"help": found.help or "", CODE: _code(found.callback), PARAMETERS: parameters}


def _code(callback: Any) -> str:
    """Return the module and the name of a command's function; typer's wrapper has those of the function."""
    module, name = callback.__module__, callback.__name__
    if getattr(import_module(module), name).__doc__ != callback.__doc__:
        raise ValueError(f"{module} has no function {name} of a command at its top")
    return f"{module}:{name}"


def _parameter(found: Any) -> dict[str, Any]:
    annotation, is_option = found.type_descriptor.annotation, found.param_type_name == "option"
    is_many = get_origin(annotation) is list
    members = {
        "name": found.name,
        **_type(get_args(annotation)[0] if is_many else annotation),
        "many": is_many or None,
        "optional": (not found.required and found.default is None) or None,
        "options": _options(found) if is_option else None,
        "help": found.help,
        "metavar": found.metavar,
        "envvar": found.envvar,
        "min": found.min,
        "max": found.max,
    }
    shown = {member: value for member, value in members.items() if value is not None}
    return shown if found.required else {**shown, "default": _default(found.default)}


def _default(value: Any) -> Any:
    """Return a default value as JSON has it."""
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _options(found: Any) -> list[str]:
    if found.secondary_opts:
        return [f"{on}/{off}" for on, off in zip(found.opts, found.secondary_opts, strict=True)]
    return list(found.opts)


def _type(annotation: Any) -> dict[str, Any]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"choices": [str(member.value) for member in annotation]}
    if annotation in _TYPES or (isinstance(annotation, type) and issubclass(annotation, Path)):
        return {"type": annotation.__name__}
    raise TypeError(f"reside/cli/declarations.py has no parameters of the type {annotation}")
