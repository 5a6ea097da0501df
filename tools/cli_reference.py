"""Write docs/cli.md, the reference of the command line, from the code: `python tools/cli_reference.py`.

It also writes reside/cli/declarations.json, with which `reside` shows help. A unit test fails if they are not current.
"""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperGroup
from typer.main import get_command

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script's path does not contain the parent folder

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = ROOT / "docs/cli.md"
DECLARATIONS: Final = ROOT / "reside/cli/declarations.json"
MODEL: Final = ROOT / "docs/model.md"
_HEAD: Final = f"""\
# Command line

`python tools/cli_reference.py` writes this page from the code. `reside --help`, and `--help` or `-h` after any command,
shows the same on a terminal. `reside --version` shows the release. [{MODEL.name}]({MODEL.name}#9-command-line) explains
what they do, and the configuration file.

Results go to standard output; progress, warnings and errors go to standard error. An error is one line, which begins
with `error:`, names the thing, and says what to do. Colours are off if the output is not a terminal, or with
`NO_COLOR`.

| exit code | meaning |
| --- | --- |
"""


def page() -> str:
    """Return the whole page."""
    from reside.cli.main import EXIT_CODES, PARTS  # noqa: PLC0415 - after the path is set

    lines = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    for name, found in subcommands().items():
        lines += ["", f"## reside {name}", "", PARTS[name].help, *_commands(f"reside {name}", found)]
    return _HEAD + "\n".join(lines) + "\n"


def subcommands() -> dict[str, Any]:
    """Return the subcommands with their code, as typer makes them, by name."""
    from reside.cli.main import PARTS, command  # noqa: PLC0415 - as above

    return {name: get_command(command([name])).commands[name] for name in PARTS}  # type: ignore[attr-defined] # a group


def declarations() -> str:
    """Return the declarations of all commands."""
    from tools.cli_declarations import text  # noqa: PLC0415 - as above

    return text(subcommands())


def _commands(path: str, found: Any) -> Iterator[str]:
    if not isinstance(found, TyperGroup):
        yield from _parameters(path, found)
        return
    for name, inner in found.commands.items():
        yield from ("", f"### {path} {name}", "", *_text(inner.help))
        if isinstance(inner, TyperGroup):
            for last, leaf in inner.commands.items():
                yield from ("", f"#### {path} {name} {last}", "", *_text(leaf.help))
                yield from _parameters(f"{path} {name} {last}", leaf)
        else:
            yield from _parameters(f"{path} {name}", inner)


def _text(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines()]


def _parameters(path: str, leaf: Any) -> Iterator[str]:
    arguments = [parameter for parameter in leaf.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in leaf.params if parameter.param_type_name == "option"]
    usage = " ".join([path, *map(_placeholder, arguments), *(["[OPTIONS]"] if options else [])])
    yield from ("", "```", usage, "```")
    if leaf.params:
        yield from ("", "| | |", "| --- | --- |")
        for parameter in [*arguments, *options]:
            yield (
                "| " + " | ".join(cell.replace("|", "\\|") for cell in (_names(parameter), _meaning(parameter))) + " |"
            )


def _placeholder(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_placeholder(parameter)}`"
    value = "" if parameter.is_flag else f" {_kind(parameter)}"
    return ", ".join(f"`{name}{value}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _kind(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    annotation = parameter.type_descriptor.annotation
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(member.value) for member in annotation)
    return {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}.get(getattr(annotation, "__name__", ""), "TEXT")


def _meaning(parameter: Any) -> str:
    default = parameter.default
    shown = isinstance(default, str | int | float | Enum) and not isinstance(default, bool) and default != ""
    parts = [
        parameter.help or "",
        "Can be repeated." if parameter.multiple else "",
        f"Default: `{default.value if isinstance(default, Enum) else default}`." if shown else "",
        f"Environment: `{parameter.envvar}`." if parameter.envvar else "",
        "Required." if parameter.required and parameter.param_type_name == "option" else "",
    ]
    return " ".join(part for part in parts if part)


if __name__ == "__main__":
    PAGE.write_text(page())
    DECLARATIONS.write_text(declarations())
