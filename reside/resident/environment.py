"""The environment of an engine, and the identity that follows from it.

An engine's environment never changes: it is what the stock command line would have got. Another passphrase, backend,
home or kubeconfig is another identity, so another engine beside the first. The identity is a hash: it tells nothing of
what it was made from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reside.resident.errors import EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL: Final = 1
VOLATILE: Final = frozenset(
    {"_", "COLUMNS", "LINES", "OLDPWD", "PWD", "PYTEST_CURRENT_TEST", "SHLVL", "TERM", "PULUMI_DEBUG_COMMANDS"}
)
"""Variables that decide nothing for an operation and differ from shell to shell (and one that is always set)."""


def command_environment(command: str, additional: Mapping[str, str]) -> dict[str, str]:
    """What ``PulumiCommand.run`` hands to the command line (pulumi/automation/_cmd.py), without what is volatile."""
    merged = {**os.environ, **additional}
    environment = {name: value for name, value in merged.items() if name not in VOLATILE}
    environment["PULUMI_AUTOMATION_API"] = "true"
    environment["PULUMI_DEBUG_COMMANDS"] = "true"  # pulumi sets it for some commands; it hides nothing else
    folder = Path(command).parent
    if folder.is_absolute():
        environment["PATH"] = os.pathsep.join([str(folder), environment.get("PATH", os.defpath)])
    return environment


def find_binary(name: str, environment: Mapping[str, str]) -> Path:
    """The engine's binary: a path as it is, a name from the environment's PATH.

    Raises:
        EngineUnavailable: There is none.
    """
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        raise EngineUnavailable(f"{name} is not there: build it (`make tools`), or set ResidentSettings.engine")
    return Path(found).absolute()


def identity(binary: Path, environment: Mapping[str, str]) -> str:
    """32 hexadecimal characters for protocol, binary (by place, size and time) and environment."""
    digest = hashlib.sha256(f"{PROTOCOL}\0".encode())
    stat = binary.stat()
    digest.update(f"{binary.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    for name in sorted(environment):
        digest.update(f"{name}\0{environment[name]}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]
