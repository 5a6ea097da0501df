"""The ``reside`` command: its parts, and the one place where errors become a line and an exit code.

Exit codes: 0 done, 1 refused or failed, 2 a usage that the command line does not know, 130 interrupted.
"""

from __future__ import annotations

import sys

import click
import typer

from reside.cli import accounts, cluster, output, replica
from reside.jazz import JazzError
from reside.kube.errors import KubeError
from reside.local import LocalError
from reside.local.cli import app as local_app
from reside.model.errors import ResideError
from reside.registry import RegistryError

INTERRUPTED = 130
KNOWN = (click.ClickException, ResideError, JazzError, KubeError, LocalError, RegistryError, OSError)
"""What is a user's mistake or the world's state; anything else is a bug, and its traceback is wanted."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Runs small autonomous services, replicas, on Kubernetes.",
)
app.add_typer(accounts.app, name="account")
app.add_typer(cluster.app, name="cluster")
app.add_typer(replica.app, name="replica")
app.add_typer(local_app, name="local")


def run(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except click.UsageError as error:
        error.show()
        return 2
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        output.fail("interrupted")
        return INTERRUPTED
    except KNOWN as error:
        output.fail(_line(error))
        return 1
    return code if isinstance(code, int) else 0


def _line(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError):
        return f"{error.filename or 'the network'}: {error.strerror or error}"
    return str(error)


def main() -> None:
    """Entry point of the ``reside`` script."""
    sys.exit(run())


if __name__ == "__main__":
    main()
