"""The environment of an engine, and the identity derived from it.

The environment of an engine never changes; it is the one that the stock command line would get, without the variables
of terminals and sessions (`session_variables`). With another passphrase, backend, home or kubeconfig the identity
differs, so another engine is used. The identity is a hash, so it reveals no value.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reside.resident.errors import EngineUnavailable
from reside.resident.session_variables import SESSION_VARIABLES, is_listed

if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL: Final = 1


def command_environment(
    command: str, additional: Mapping[str, str], session_variables: frozenset[str] = SESSION_VARIABLES
) -> dict[str, str]:
    """Return the environment of `PulumiCommand.run` (pulumi/automation/_cmd.py), without variables of the session.

    A variable that the program sets itself (`additional`, with another value than this process has) is always kept.
    """
    environment = {**os.environ, **additional}
    for name in [name for name in environment if is_listed(name, session_variables)]:
        if environment[name] == os.environ.get(name):
            del environment[name]
    environment["PULUMI_AUTOMATION_API"] = "true"
    environment["PULUMI_DEBUG_COMMANDS"] = "true"  # pulumi sets it for some commands; it has no other effect
    folder = Path(command).parent
    path = [str(folder)] if folder.is_absolute() else []
    if path or "PATH" in environment:
        # A shell that starts another one often adds its folders again; the search stops at the first.
        found = [*path, *environment.get("PATH", os.defpath).split(os.pathsep)]
        environment["PATH"] = os.pathsep.join(dict.fromkeys(found))
    return environment


def find_binary(name: str, environment: Mapping[str, str]) -> Path:
    """Return the path of the engine's binary; a name is searched on the PATH of the environment.

    Raises:
        EngineUnavailable: the binary is missing.
    """
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        raise EngineUnavailable(f"{name} is missing: run `make tools`, or set ResidentSettings.engine")
    return Path(found).absolute()


def identity(binary: Path, environment: Mapping[str, str]) -> str:
    """Return 32 hexadecimal characters that identify protocol, binary (path, size and time) and environment."""
    digest = hashlib.sha256(f"{PROTOCOL}\0".encode())
    stat = binary.stat()
    digest.update(f"{binary.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    for name in sorted(environment):
        digest.update(f"{name}\0{environment[name]}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]
