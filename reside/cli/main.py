"""The `reside` command: its subcommands, and the only code that turns errors into a message and an exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, NoReturn

import typer

from reside.access.cures import with_cure
from reside.cli import declarations, library_logs, output, streams
from reside.cli.streams import CLOSED_PIPE
from reside.common import tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME: Final = "reside"
COMPLETION_VARIABLE: Final = "_RESIDE_COMPLETE"
"""Variable of the environment with which a shell asks for completions, as typer names it."""
INTERRUPTED: Final = 130
BACKUP_PASSPHRASE: Final = "RESIDE_BACKUP_PASSPHRASE"  # noqa: S105 - the name of a variable
NEED_PASSPHRASE: Final = frozenset({"cluster backup", "cluster restore"})
"""The commands that read it, and remove it from the environment themselves."""
EXIT_CODES: Final = {
    0: "success",
    1: "refused or failed; standard error says why",
    2: "invalid usage: an unknown command or option, or a missing argument",
    INTERRUPTED: "interrupted, for example by Ctrl-C",
    CLOSED_PIPE: "the reader of standard output has closed it, for example `| head -1`; nothing more is printed",
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
    "contract": Part("reside.cli.contracts", "Write the types of contracts in TypeScript or Python."),
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


def new_app() -> typer.Typer:
    """Return the command without subcommands."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings=declarations.SETTINGS,
    )

    @app.callback()
    def reside(
        *,
        _version: Annotated[
            bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
        ] = False,
    ) -> None:
        """Run small services, called replicas, on Kubernetes."""

    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - slow to import, and rarely needed

        output.line(f"{NAME} {version(NAME)}")
        raise typer.Exit


def command(arguments: Sequence[str]) -> typer.Typer:
    """Return the command.

    Only the subcommand that the arguments name is imported. The others are listed with their help; to import all of
    them takes a second.
    """
    app = new_app()
    first = named_part(arguments)
    for name, part in PARTS.items():
        if name != first:
            app.command(name, help=part.help)(_not_imported)
        elif name in SINGLE:
            app.command(name, help=part.help)(getattr(import_module(part.module), name))
        else:
            app.add_typer(import_module(part.module).app, name=name, help=part.help)
    return app


def declared_command(arguments: Sequence[str], run_it: Callable[[], int | None]) -> typer.Typer:
    """Return the command without the code of its subcommands; `run_it` runs the one that the arguments name."""
    app, known = new_app(), declarations.load()
    declarations.add_commands(app, known, declarations.named_path(known, arguments), run_it)
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
    """Run the command; return its exit code.

    Args:
        arguments: those of the process if not given.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    words = completed_words(os.environ)
    try:
        if words is not None:
            _complete(declared_command(words, _not_imported))
        path = declarations.named_path(known := declarations.load(), given)
        with tracing.span(f"{NAME} {path}".rstrip()):
            code = _run(given, path, runs=declarations.is_complete(known, path))
    except SystemExit as end:
        if streams.is_closed_pipe(end):
            return CLOSED_PIPE
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except typer.TyperException as error:
        return _refuse_usage(error)
    except typer.Abort:
        output.fail("the input ended without an answer: nothing was done")
        return 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    except expected_errors() as error:
        output.fail(one_line(error), notes_of(error))
        return 1
    if code == INTERRUPTED:
        output.fail("interrupted")
    return code


def _run(given: list[str], path: str, *, runs: bool) -> int:
    """Run the command, or print its help; return the exit code.

    Args:
        given: the arguments.
        path: the group or the command that the arguments name.
        runs: whether it is a command.

    Raises:
        TyperException: the usage is invalid.
    """
    known, rest = declarations.load(), declarations.without_path(given, path)

    def real() -> int:
        if path not in NEED_PASSPHRASE:
            os.environ.pop(BACKUP_PASSPHRASE, None)  # no child process inherits it
        app = declarations.imported(known, path)
        library_logs.set_up_if_imported()
        gc.freeze()
        gc.enable()
        return _call(app, rest, f"{NAME} {path}")

    if runs and not any(option in given for option in declarations.HELP):
        return real()
    if not path:
        return _call(declared_command(given, real), given)
    alone = declarations.named_alone(known, path, real)  # `--help` may be the value of an option: then the command runs
    return _call(alone, rest, f"{NAME} {path}")


def _call(app: typer.Typer, given: list[str], name: str = NAME) -> int:
    code = app(args=given, prog_name=name, standalone_mode=False)
    return code if isinstance(code, int) else 0


def _refuse_usage(error: typer.TyperException) -> int:
    """Print what is wrong with the usage, and where to read more; return the exit code."""
    context = getattr(error, "ctx", None)
    more = f"see `{context.command_path} --help`" if context is not None else "see `reside --help`"
    text = " ".join(error.format_message().replace("Value error, ", "").split())
    if text:  # else the help was printed
        end = f" {more.capitalize()}" if text.endswith("?") else f": {more}"
        output.fail(f"{text[0].lower()}{text[1:].rstrip('.')}{end}")
    return error.exit_code


def _complete(app: typer.Typer) -> NoReturn:
    """Print the completions of the words in the environment, and exit."""
    from typer._completion_classes import completion_init  # noqa: PLC0415 - only completions need it

    completion_init()  # typer does it for programs with its own options --install-completion only
    app(args=[], prog_name=NAME, complete_var=COMPLETION_VARIABLE)
    raise AssertionError("typer exits after the completion")


def one_line(error: Exception) -> str:
    """Return an error as one sentence."""
    if not isinstance(error, OSError):
        return str(error)
    what = error.filename or _place(error)
    cure = ": check the path" if isinstance(error, FileNotFoundError) else ""
    return with_cure(f"{what}: {error.strerror or error}{cure}")


def notes_of(error: Exception) -> list[str]:
    """Return what else is to be shown of an error, line by line, such as a compiler's output."""
    return list(getattr(error, "__notes__", ()))


def _place(error: OSError) -> str:
    return "this machine" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENOMEM) else "the network"


def main() -> None:
    """Run the `reside` script. Logs go to standard error, because standard output is for results."""
    gc.disable()  # until the command is imported, which leaves no garbage: this saves a tenth of the time
    streams.set_up()
    tracing.enable("reside")
    library_logs.want()
    code = run()
    if not tracing.disable():
        output.warn("not all spans could be sent to the address in OTEL_EXPORTER_OTLP_ENDPOINT")
    sys.exit(streams.end(code))


if __name__ == "__main__":
    main()
