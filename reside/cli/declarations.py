"""The declarations of all commands: their names, help and parameters, without the code that runs them.

Help, completions and an incomplete command need no more. To import the code of a command takes up to half a second.

`declarations.json` is written from the code by `python tools/cli_reference.py`; a unit test fails if it is not current.
It has one line for each group and each command, by its path: `replica`, `replica list`.
"""

from __future__ import annotations

import inspect
import json
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Declarations = Mapping[str, Mapping[str, Any]]
    Run = Callable[[], int | None]

FILE: Final = Path(__file__).with_name("declarations.json")
PARAMETERS: Final = "parameters"
"""The member that a command has, and a group has not."""
CODE: Final = "code"
"""The member with a command's module and function."""
HELP: Final = ("--help", "-h")
"""The options that print the help of a group or a command."""
SETTINGS: Final[dict[str, Any]] = {"help_option_names": HELP}
"""Settings of an app or a command, which those below it take over."""
_TYPES: Final[dict[str, type[Any]]] = {each.__name__: each for each in (str, int, float, bool)} | {"Path": Path}
_INFO: Final = ("help", "metavar", "envvar", "min", "max")
"""Members of a parameter that typer takes by the same name."""


def load() -> Declarations:
    """Return the declarations, in the order of the help."""
    found: Declarations = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def named_path(declarations: Declarations, arguments: Sequence[str]) -> str:
    """Return the path of the group or the command that the arguments name, as far as it exists; it may be empty."""
    path = ""
    for word in arguments:
        if word.startswith("-"):
            continue
        longer = f"{path} {word}".lstrip()
        if longer not in declarations:
            break
        path = longer
    return path


def without_path(arguments: Sequence[str], path: str) -> list[str]:
    """Return the arguments without the words of the path that they name."""
    rest = list(arguments)
    for word in path.split():
        rest.remove(word)
    return rest


def named_alone(declarations: Declarations, named: str, run: Run) -> typer.Typer:
    """Return the named group or command alone.

    Typer imports pydantic, which takes a tenth of a second, for the options of each group around a command.
    """
    app = typer.Typer(
        no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, context_settings=SETTINGS
    )
    if is_complete(declarations, named):
        app.command(help=declarations[named]["help"], context_settings=SETTINGS)(
            _function(declarations[named][PARAMETERS], run)
        )
    else:
        app.callback(help=declarations[named]["help"])(_function((), run))
        _add(app, declarations, named, named, run)
    return app


def imported(declarations: Declarations, path: str) -> typer.Typer:
    """Import the code of a command, and return the command alone: the modules of others are not imported."""
    declared = declarations[path]
    module, _, function = declared[CODE].partition(":")
    app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    app.command(help=declared["help"], context_settings=SETTINGS)(getattr(import_module(module), function))
    return app


def is_complete(declarations: Declarations, path: str) -> bool:
    """Return whether a path is that of a command, not of a group of commands."""
    return PARAMETERS in declarations.get(path, ())


def add_commands(app: typer.Typer, declarations: Declarations, named: str, run: Run) -> None:
    """Add all commands to the app: those of the named groups with their names and help, the named one in full.

    Args:
        app: the app.
        declarations: all declarations.
        named: path of the group or the command that the arguments name.
        run: runs the named command, and returns its exit code.
    """
    _add(app, declarations, "", named, run)


def _add(app: typer.Typer, declarations: Declarations, parent: str, named: str, run: Run) -> None:
    for path in _children(declarations, parent):
        declared, name = declarations[path], path.rpartition(" ")[2]
        is_named = f"{named} ".startswith(f"{path} ")
        if is_named and PARAMETERS not in declared:
            group = typer.Typer(no_args_is_help=True)
            _add(group, declarations, path, named, run)
            app.add_typer(group, name=name, help=declared["help"])
        else:
            shown = declared.get(PARAMETERS, ()) if is_named else ()
            app.command(name, help=declared["help"])(_function(shown, run))


def _children(declarations: Declarations, parent: str) -> Iterator[str]:
    return (path for path in declarations if path.rpartition(" ")[0] == parent)


def _function(parameters: Sequence[Mapping[str, Any]], run: Run) -> Callable[..., int | None]:
    """Return a function with these parameters that does `run`."""

    def declared(**_arguments: Any) -> int | None:
        return run()

    signature = inspect.Signature([_parameter(each) for each in parameters])
    declared.__signature__ = signature  # type: ignore[attr-defined]  # typer reads it
    return declared


def _parameter(declared: Mapping[str, Any]) -> inspect.Parameter:
    choices = declared.get("choices")
    kind: Any = StrEnum("Choice", [(each, each) for each in choices]) if choices else _TYPES[declared["type"]]
    if declared.get("many"):
        kind = list[kind]
    if declared.get("optional"):
        kind = kind | None
    members = {member: declared[member] for member in _INFO if member in declared}
    names = declared.get("options")
    info = typer.Argument(**members) if names is None else typer.Option(*names, **members)
    default = declared.get("default", inspect.Parameter.empty)
    return inspect.Parameter(
        declared["name"], inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )
