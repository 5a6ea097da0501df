"""`reside new`: make the folder of a replica or a contract from a template that builds and passes its test at once."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path  # noqa: TC003 - typer evaluates it
from shlex import quote
from string import Template
from typing import TYPE_CHECKING, Annotated, Final

import typer
import yaml

from reside.build.language import Language
from reside.cli import output
from reside.model.constants import RESIDE_REGISTRY
from reside.model.errors import InvalidInput, InvalidName
from reside.model.manifest import ContractManifest
from reside.model.names import check_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reside.build.typescript_kit import Kit

_REGISTRY: Final = re.compile(r"[a-z0-9.:-]+(/[a-z0-9._-]+)*")
_VERSION: Final = re.compile(r"\.v[1-9][0-9]*$")
_SUFFIX: Final = ".template"
_PLACES: Final = {"dockerignore": ".dockerignore", "gitignore": ".gitignore"}
"""Name of a template → name of the file, where they differ."""


class Kind(StrEnum):
    """What to make."""

    replica = "replica"
    oneshot = "oneshot"
    contract = "contract"


_TESTS: Final = {Language.python: "python -m pytest", Language.typescript: "npm install && npm run check && npm test"}


@dataclass(frozen=True)
class Names:
    """The names in the files of a new folder.

    Args:
        name: name of the replica, or of the contract without its version.
        contract: name of the contract with its version.
        registry: the registry, and the path in it, that come before both.
    """

    name: str
    contract: str
    registry: str

    def values(self) -> Mapping[str, str]:
        """Return what the templates contain."""
        title = self.name.replace("-", " ").capitalize()
        return {"name": self.name, "contract": self.contract, "registry": self.registry, "title": title}


def new(
    folder: Annotated[Path, typer.Argument(help="Folder to make; it must be absent or empty.")],
    *,
    kind: Annotated[
        Kind, typer.Option(help="A replica with a contract of its own, a replica that runs once, or a contract alone.")
    ] = Kind.replica,
    lang: Annotated[Language, typer.Option(help="Language of a replica.")] = Language.python,
    name: Annotated[str | None, typer.Option(help="Name; that of the folder if not given.")] = None,
    registry: Annotated[
        str, typer.Option(help="Registry of the image, with the path in it, such as `ghcr.io/acme`.")
    ] = RESIDE_REGISTRY,
) -> None:
    """Make a replica or a contract from a template that builds and passes its test at once."""
    names = parse_names(name or folder.resolve().name, registry)
    files = make(folder, kind, names, lang)
    output.console.print(f"{folder} has {', '.join(files)}", markup=False, highlight=False, soft_wrap=True)
    for step, line in next_steps(folder, kind, names, lang):
        output.console.print(f"{step:<6}{line}", markup=False, highlight=False, soft_wrap=True)


def parse_names(name: str, registry: str) -> Names:
    """Return the names of what is made.

    Args:
        name: a name; the version at its end, such as `.v2`, is that of the contract, `.v1` if there is none.
        registry: a registry, with the path in it.

    Raises:
        InvalidName: the name is not that of a replica.
        InvalidInput: the registry is none.
    """
    if not _REGISTRY.fullmatch(registry):
        raise InvalidInput(f"registry {registry!r} is invalid: use a host and a path, such as ghcr.io/acme")
    stem = _VERSION.sub("", name)
    try:
        check_name(stem)
    except InvalidName as error:
        raise InvalidName(f"{error}; --name gives another name than that of the folder") from None
    return Names(stem, name if name != stem else f"{name}.v1", registry)


def make(folder: Path, kind: Kind, names: Names, language: Language = Language.python) -> list[str]:
    """Write the files of a template into a folder; return their names.

    A replica in TypeScript gets the package `@reside/replica` as a file, because no registry has it.

    Raises:
        InvalidInput: the folder is a file, or contains something; or a contract is to have a language.
        LocalError: Node.js or npm is missing or has failed.
    """
    if kind is Kind.contract and language is not Language.python:
        raise InvalidInput("a contract is the same in all languages: leave out --lang")
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file: name a folder that does not exist yet")
    if folder.is_dir() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} is not empty: name a folder that does not exist yet, or empty this one")
    package = _typescript() if language is Language.typescript else None
    files = dict(_files(kind, names, package))
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    if package is not None:
        shutil.copyfile(package.archive, folder / package.archive.name)
        return [*files, package.archive.name]
    return list(files)


def _typescript() -> Kit:
    from reside.build.typescript_kit import kit  # noqa: PLC0415 - slow to import, and other folders do not need it

    with output.errors.status("preparing the package @reside/replica") as status:
        return kit(status.update)


def _files(kind: Kind, names: Names, package: Kit | None) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file; the contract of a replica is in a folder of its own."""
    folder = f"{kind}-ts" if package is not None else kind
    values = {**names.values(), **(_of_typescript(names, package) if package is not None else {})}
    for source in sorted((resources.files("reside.cli") / "templates" / folder).iterdir(), key=lambda each: each.name):
        name = source.name.removesuffix(_SUFFIX)
        inner = kind is Kind.replica and name == "contract.yaml"
        path = f"{names.contract}/{name}" if inner else _PLACES.get(name, name)
        text = Template(source.read_text(encoding="utf-8")).substitute(values)
        yield path, text
        if package is not None and name == "contract.yaml":
            yield "contract.ts", _types(text)


def _types(contract: str) -> str:
    """Return the types of a contract, as `reside contract types` writes them."""
    from reside.build.contract_types import write_types  # noqa: PLC0415 - slow to import, as above

    return write_types(ContractManifest.model_validate(yaml.safe_load(contract)), Language.typescript)


def _of_typescript(names: Names, package: Kit) -> Mapping[str, str]:
    """Return what templates in TypeScript contain besides: the name of the contract's constant, and versions."""
    from reside.build.contract_types.naming import constant  # noqa: PLC0415 - slow to import, as above

    settings = package.settings
    return {
        "constant": constant(names.contract),
        "archive": package.archive.name,
        "core": settings["overrides"]["cojson-core-rn"],
        "jazz_tools": settings["dependencies"]["jazz-tools"],
        "types_node": settings["devDependencies"]["@types/node"],
        "typescript": settings["devDependencies"]["typescript"],
        "zod": settings["dependencies"]["zod"],
    }


def next_steps(
    folder: Path, kind: Kind, names: Names, language: Language = Language.python
) -> Iterator[tuple[str, str]]:
    """Yield what to do with a new folder: the name of the step, and its command."""
    quoted, contract = quote(str(folder)), quote(str(folder / names.contract))
    yield "test", f"cd {quoted} && {_TESTS[language]}"
    first = f"reside build {contract} --push && " if kind is Kind.replica else ""
    yield "build", f"{first}reside build {quoted} --push"
    if kind is not Kind.contract:
        yield "load", f"reside replica load {names.registry}/{names.name}:latest"
