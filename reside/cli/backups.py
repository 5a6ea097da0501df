"""`reside cluster backup` and `restore`: a whole cluster in one encrypted file."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import SecretStr

from reside.cli import config, output
from reside.cli.main import BACKUP_PASSPHRASE
from reside.cli.outages import AGAIN, leaving
from reside.cli.places import Place
from reside.cli.progress import Progress, ProgressOption, Steps, print_result
from reside.cli.prompt import ask
from reside.cli.shared_options import with_options
from reside.model.errors import InvalidInput

PASSPHRASE: Final = BACKUP_PASSPHRASE
SHORTEST: Final = 8
RESTORE_S: Final = 300.0
"""Seconds that each wait of a restore may take, such as that for a volume or for a pod that pulls its image."""

PassphraseFile = Annotated[
    Path | None,
    typer.Option(help=f"File whose first line is the passphrase; if not given, {PASSPHRASE}, or a question."),
]


@with_options(Place)
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the backup.")],
    *,
    passphrase_file: PassphraseFile = None,
    options: Place,
    format_: ProgressOption = Progress.text,
) -> None:
    """Write the cluster's data, accounts and engine states to one encrypted file. Nothing is stopped."""
    from reside.seed.backups.saving import back_up  # noqa: PLC0415 - slow to import

    target = options.target()
    secret = _passphrase(passphrase_file, is_new=True)
    with Steps("backup", format_) as steps:
        manifest = asyncio.run(back_up(target, file, secret, steps.report))
    text = f"{file} has the backup of namespace {manifest.namespace} at {manifest.created}, {_size(file)}"
    print_result(format_, text, file=str(file), namespace=manifest.namespace, created=str(manifest.created))
    _say(
        "it can be restored only with its passphrase, and has the credentials of all replicas: keep both safe", format_
    )


@with_options(Place)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `reside cluster backup`.")],
    *,
    passphrase_file: PassphraseFile = None,
    account: Annotated[str, typer.Option(help="Account of yours that the context uses.")] = "admin",
    options: Place,
    format_: ProgressOption = Progress.text,
) -> None:
    """Restore a backup into an empty namespace. Run it again if it was interrupted.

    With --cluster and a place, the cluster is added to the configuration.
    """
    from reside.seed.backups.archive import Archive  # noqa: PLC0415 - slow to import
    from reside.seed.backups.restoring import restore as restore_to  # noqa: PLC0415 - slow to import

    target = options.target(deadline=RESTORE_S)
    is_added = options.cluster is not None and options.known() is None
    if is_added and options.cluster is not None:  # what is wrong is refused before anything is done
        config.load().account(account)
        config.load().check_place(options.cluster, (None, target.namespace, target.kubeconfig, target.kube_context))
    archive = Archive(file, _passphrase(passphrase_file, is_new=False))
    with leaving(AGAIN), Steps("restore", format_) as steps:
        manifest = asyncio.run(restore_to(target, archive, steps.report))
    text = f"namespace {target.namespace} is as it was at {manifest.created}; its replicas are starting"
    print_result(format_, text, namespace=target.namespace, created=str(manifest.created))
    if is_added and options.cluster is not None:
        cluster = config.Cluster(
            name=options.cluster,
            namespace=target.namespace,
            alpha_replica_id=manifest.alpha,
            kube_context=target.kube_context,
            kubeconfig=target.kubeconfig,
            access="direct" if target.access == "direct" else "port-forward",
        )
        config.change(lambda current: current.with_cluster(cluster, account))
        _say(f"cluster {cluster.name} is added; context {cluster.name} is current", format_)


def _passphrase(file: Path | None, *, is_new: bool) -> SecretStr:
    """Return the passphrase from the file, the environment or the terminal.

    Raises:
        InvalidInput: there is none, it is not UTF-8, or a new one is too short.
    """
    if file is not None:
        try:
            found = file.read_text(encoding="utf-8").partition("\n")[0]
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"--passphrase-file {file} can't be read: {error}") from None
    else:
        found = os.environ.pop(PASSPHRASE, "")  # no child process inherits it
        if not found and sys.stdin.isatty():
            cure = f"set {PASSPHRASE}, or name a file with --passphrase-file"
            found = ask("passphrase of the backup", cure, hide_input=True, confirmation_prompt=is_new, err=True)
    if not found:
        raise InvalidInput(f"there is no passphrase: set {PASSPHRASE}, or name a file with --passphrase-file")
    if not _is_utf8(found):
        raise InvalidInput(f"the passphrase in {PASSPHRASE} is not UTF-8: set it in UTF-8, or use --passphrase-file")
    if is_new and len(found) < SHORTEST:
        raise InvalidInput(f"the passphrase has fewer than {SHORTEST} characters: choose a longer one")
    return SecretStr(found)


def _is_utf8(text: str) -> bool:
    """Return whether a text of the environment was UTF-8; Python replaces the other bytes by surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _size(file: Path) -> str:
    return f"{file.stat().st_size / 2**20:.1f} MiB"


def _say(line: str, format_: Progress) -> None:
    """Print a line for people; beside events for programs, on standard error."""
    console = output.errors if format_ is Progress.json else output.console
    console.print(line, highlight=False, markup=False, soft_wrap=True)
