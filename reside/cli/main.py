"""The ``reside`` command: its parts, and the one place where errors become a line and an exit code.

Exit codes: 0 done, 1 refused or failed, 2 a usage that the command line does not know, 130 interrupted.
"""

from __future__ import annotations

import sys

import stamina.instrumentation
import structlog
import typer

from reside.cli import accounts, build, cluster, output, replica
from reside.jazz import JazzError
from reside.kube import KubeError
from reside.local import LocalError
from reside.local.cli import app as local_app
from reside.locks import LockError
from reside.model.errors import ResideError
from reside.registry import RegistryError

INTERRUPTED = 130
KNOWN = (ResideError, JazzError, KubeError, LocalError, LockError, RegistryError, OSError)
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
app.command("build")(build.build)


def run(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        app(args=arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        output.fail("interrupted")
        return INTERRUPTED
    except KNOWN as error:
        output.fail(line_of(error))
        return 1
    return 0


def line_of(error: Exception) -> str:
    """An error as one sentence."""
    if isinstance(error, OSError):
        return f"{error.filename or 'the network'}: {error.strerror or error}"
    return str(error)


def main() -> None:
    """Entry point of the ``reside`` script; standard output is for results, so that logs go elsewhere."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    stamina.instrumentation.set_on_retry_hooks([])  # a command that gives up says why; how often it tried is noise
    sys.exit(run())


if __name__ == "__main__":
    main()
