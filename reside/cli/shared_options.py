"""Options that several commands share, defined once as the fields of a dataclass."""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., Any])


def with_options(options_class: type[Any], parameter: str = "options") -> Callable[[Command], Command]:
    """Add each field of a dataclass to a command as an option, with its `typer.Option` and its default.

    Args:
        options_class: the dataclass.
        parameter: the parameter of the decorated function that gets an object of it.
    """
    hints = get_type_hints(options_class, include_extras=True)
    shared = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(options_class)
    ]
    names = {each.name for each in shared}

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [each for name, each in signature.parameters.items() if name != parameter]

        @wraps(command)
        def wrapper(**arguments: Any) -> Any:
            options = options_class(**{name: value for name, value in arguments.items() if name in names})
            others = {name: value for name, value in arguments.items() if name not in names}
            return command(**others, **{parameter: options})

        wrapper.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]  # typer reads it
        return wrapper  # type: ignore[return-value]  # callers pass options by name

    return decorate
