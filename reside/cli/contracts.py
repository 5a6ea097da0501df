"""`reside contract types`: write the types of a contract's methods and permissions in TypeScript or Python."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer evaluates it
from typing import Annotated

import typer

from reside.build.contract_types import write_types
from reside.build.language import Language  # noqa: TC001 - typer evaluates it
from reside.cli.identity import read_manifest
from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import InvalidInput
from reside.model.manifest import ContractManifest

app = typer.Typer(no_args_is_help=True)


@app.callback()
def contract() -> None:
    """Write the types of contracts in TypeScript or Python."""


@app.command("types")
def types(
    source: Annotated[str, typer.Argument(help="Folder with contract.yaml, or the image of a contract.")],
    *,
    lang: Annotated[Language, typer.Option(help="Language of the types.")],
    file: Annotated[Path | None, typer.Option(help="File to write; standard output if not given.")] = None,
    local_cluster: Annotated[
        str,
        typer.Option(help=f"Local cluster that runs the registry {RESIDE_REGISTRY}.", envvar="RESIDE_LOCAL_CLUSTER"),
    ] = "default",
) -> None:
    """Write the types of a contract: bodies and responses of its methods, params of its permissions."""
    manifest, _ = read_manifest(source, local_cluster)
    if not isinstance(manifest, ContractManifest):
        raise InvalidInput(
            f"{source} is a {manifest.type}: name a contract, such as one that `reside identity {source} -o json` lists"
        )
    text = write_types(manifest, lang)
    if file is None:
        sys.stdout.write(text)
    else:
        file.write_text(text, encoding="utf-8")
