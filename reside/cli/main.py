"""The `reside` command: its subcommands, and the only code that turns errors into a message and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import typer

from reside.access.cures import with_cure
from reside.cli import output
from reside.common import tracing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME: Final = "reside"
COMPLETION_VARIABLE: Final = "_RESIDE_COMPLETE"
"""Variable of the environment with which a shell asks for completions, as typer names it."""
INTERRUPTED: Final = 130
EXIT_CODES: Final = {
    0: "success",
    1: "refused or failed; standard error says why",
    2: "invalid usage: an unknown command or option, or a missing argument",
    INTERRUPTED: "interrupted, for example by Ctrl-C",
}


class Part(NamedTuple):
    """A subcommand: the module that has it, and its one-line help."""

    module: str
    help: str


PARTS: Final = {
    "account": Part("reside.cli.accounts", "Manage your Jazz accounts."),
    "cluster": Part("reside.cli.cluster", "Create, add and describe clusters."),
    "replica": Part("reside.cli.replica", "Load, describe, change and delete replicas."),
    "request": Part("reside.cli.requests", "Create, review, approve and reject load requests."),
    "permission": Part("reside.cli.permissions", "Grant, revoke, list and explain permissions."),
    "state": Part("reside.cli.state", "Read and repair the state that the Sentinel keeps of stacks."),
    "user": Part("reside.cli.users", "Manage users and sets of permissions; needs the user manager."),
    "secret": Part("reside.cli.secrets", "Read, set and edit secrets; needs the replica secret."),
    "local": Part("reside.local.cli", "Run Kubernetes on this machine."),
    "new": Part("reside.cli.new", "Make a replica or a contract from a template that builds and passes its test."),
    "build": Part("reside.cli.build", "Build the image of a replica or a contract."),
    "dev": Part("reside.cli.dev", "Build and load a replica at each change of its folder, and show its logs."),
    "identity": Part("reside.cli.identity", "Print the identity of a replica or a contract."),
    "doctor": Part("reside.cli.doctor", "Check this machine, the configuration and the cluster."),
    "explain": Part("reside.cli.explaining", "Explain an error code, a status, a reason or a rule of the policy."),
    "completion": Part("reside.cli.completion", "Print the completion script of a shell: bash, zsh or fish."),
    "images": Part("reside.cli.images", "Build and push the images of ReSide."),
}

SINGLE: Final = frozenset({"build", "completion", "dev", "doctor", "explain", "identity", "new"})
"""The subcommands that are one command: the module has a function of that name. The others have an `app`."""


def expected_errors() -> tuple[type[Exception], ...]:
    """Return the errors that users or the environment cause. All others are bugs and print their traceback."""
    from reside.access.errors import AccessError  # noqa: PLC0415
    from reside.jazz import JazzError  # noqa: PLC0415 - needed only after an error
    from reside.local import LocalError  # noqa: PLC0415
    from reside.locks import LockError  # noqa: PLC0415
    from reside.model.errors import ResideError  # noqa: PLC0415
    from reside.registry import RegistryError  # noqa: PLC0415

    return (ResideError, JazzError, AccessError, LocalError, LockError, RegistryError, OSError)


def command(arguments: Sequence[str]) -> typer.Typer:
    """Return the command.

    Only the subcommand that the arguments name is imported. The others are listed with their help; to import all of
    them takes a second.
    """
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)

    @app.callback()
    def reside() -> None:
        """Run small services, called replicas, on Kubernetes."""

    first = named_part(arguments)
    for name, part in PARTS.items():
        if name != first:
            app.command(name, help=part.help)(_not_imported)
        elif name in SINGLE:
            app.command(name, help=part.help)(getattr(import_module(part.module), name))
        else:
            app.add_typer(import_module(part.module).app, name=name, help=part.help)
    return app


def named_part(arguments: Sequence[str]) -> str | None:
    """Return the subcommand that the arguments name; None if they name none, so that help or an error is printed."""
    first = next((argument for argument in arguments if not argument.startswith("-")), None)
    return first if first in PARTS else None


def completed_words(environment: Mapping[str, str]) -> list[str] | None:
    """Return the words after `reside` on the command line that a shell completes; None if a command is to run."""
    if COMPLETION_VARIABLE not in environment:
        return None
    words = environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS") or ""  # bash, or another shell
    return words.split()[1:]


def _not_imported() -> None:
    """Stand for a subcommand that the arguments do not name; it never runs."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    words = completed_words(os.environ)
    try:
        if words is not None:
            _complete(command(words))
        app = command(given)
        with tracing.span(name_of(app, given)):
            app(args=given, prog_name=NAME)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        output.fail("interrupted")
        return INTERRUPTED
    except expected_errors() as error:
        output.fail(one_line(error))
        return 1
    return 0


def _complete(app: typer.Typer) -> NoReturn:
    """Print the completions of the words in the environment, and exit."""
    from typer._completion_classes import completion_init  # noqa: PLC0415 - only completions need it

    completion_init()  # typer does it for programs with its own options --install-completion only
    app(args=[], prog_name=NAME, complete_var=COMPLETION_VARIABLE)
    raise AssertionError("typer exits after the completion")


def name_of(app: typer.Typer, arguments: Sequence[str]) -> str:
    """Return the command that the arguments name, without options and values: its name in traces."""
    names, found = ["reside"], typer.main.get_command(app)
    for argument in arguments:
        if not isinstance(found, typer.core.TyperGroup) or argument not in found.commands:
            break
        names.append(argument)
        found = found.commands[argument]
    return " ".join(names)


def one_line(error: Exception) -> str:
    """Return an error as one sentence."""
    if isinstance(error, OSError):
        return with_cure(f"{error.filename or 'the network'}: {error.strerror or error}")
    return str(error)


def main() -> None:
    """Run the `reside` script. Logs go to standard error, because standard output is for results."""
    if named_part(sys.argv[1:]):
        _set_up_logs()
    tracing.enable("reside")
    code = run()
    if not tracing.disable():
        output.warn("not all spans could be sent to the address in OTEL_EXPORTER_OTLP_ENDPOINT")
    sys.exit(code)


def _set_up_logs() -> None:
    """Set up the libraries that log; to import them takes longer than to print the help."""
    import stamina.instrumentation  # noqa: PLC0415
    import structlog  # noqa: PLC0415

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    stamina.instrumentation.set_on_retry_hooks([])  # do not log retries: the error of the last attempt is printed
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # one message at the end is enough


if __name__ == "__main__":
    main()
