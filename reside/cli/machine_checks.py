"""The checks of `reside doctor` that need no cluster: the machine and the configuration."""

from __future__ import annotations

import shutil
import stat
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reside.build.cache import cache_folder
from reside.cli import config, vault
from reside.cli.accounts import credentials_of
from reside.cli.findings import Check, Finding, in_thread
from reside.cli.secret_store import FileStore
from reside.local import Toolchain, default_state
from reside.local.errors import ToolMissingError
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

TOOLS: Final = ("kubectl", "pulumi", "reside-engine")
_GIB: Final = 1 << 30
LEAST_DISK: Final = 1 * _GIB
"""Bytes of free disk space under which builds and databases fail soon."""
LITTLE_DISK: Final = 5 * _GIB
LITTLE_MEMORY: Final = _GIB // 2
"""Bytes of available memory under which the kernel ends processes soon."""
_MEMORY: Final = Path("/proc/meminfo")


def machine_checks() -> list[Check]:
    """Return the checks of this machine."""
    folders = (cache_folder(), default_state("default"), config.config_folder())
    return [
        Check("toolchain", partial(in_thread, lambda: toolchain(Toolchain.default()))),
        Check("disk", partial(in_thread, lambda: disk({_existing(folder) for folder in folders}))),
        Check("memory", partial(in_thread, lambda: memory(_MEMORY))),
    ]


def configuration_checks(context: str | None) -> list[Check]:
    """Return the checks of the configuration, of a context or the current one."""
    return [
        Check("configuration", partial(in_thread, configuration)),
        Check("account", partial(in_thread, lambda: account(context))),
    ]


def toolchain(tools: Toolchain) -> Finding:
    """Look for the programs that bootstraps and port-forwards need; load, call and describe do without."""
    try:
        tools.find_all(TOOLS)
    except ToolMissingError as error:
        return Finding("warning", "toolchain", str(error), "only needed by bootstraps, `local` and port-forwards")
    return Finding("ok", "toolchain", f"{', '.join(TOOLS)} are present")


def disk(folders: Iterable[Path]) -> Finding:
    """Look at the free space of the file system that has the least."""
    free, folder = min((shutil.disk_usage(folder).free, folder) for folder in folders)
    what = f"{free / _GIB:.1f} GiB are free in {folder}"
    if free >= LITTLE_DISK:
        return Finding("ok", "disk", what)
    return Finding("failed" if free < LEAST_DISK else "warning", "disk", what, "free disk space")


def memory(source: Path) -> Finding:
    """Look at the memory that is available without swapping."""
    try:
        lines = dict(line.split(":", 1) for line in source.read_text().splitlines())
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return Finding("ok", "memory", "not known on this system")
    what = f"{available / _GIB:.1f} GiB are available"
    if available >= LITTLE_MEMORY:
        return Finding("ok", "memory", what)
    return Finding("warning", "memory", what, "end other programs, or stop the local cluster with `reside local down`")


def configuration() -> Finding:
    """Read the configuration, and look at its mode."""
    name, path = "configuration", config.config_path()
    loaded = config.load()
    if not path.exists():
        return Finding("ok", name, f"{path} does not exist yet")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return Finding("warning", name, f"{path} may be read or written by others", f"chmod 600 {path}")
    count = f"clusters: {len(loaded.clusters)}, accounts: {len(loaded.accounts)}"
    return Finding("ok", name, f"{path}, {count}, current context: {loaded.current_context or 'none'}")


def account(context: str | None) -> Finding:
    """Decrypt the secret of the context's account."""
    loaded = config.load()
    if context is None and loaded.current_context is None:
        return Finding("warning", "account", "no cluster is configured", "`make up` or `reside cluster bootstrap NAME`")
    found = loaded.account(loaded.context(context).account)
    try:
        credentials_of(found)
    except InvalidInput as error:
        return Finding("failed", "account", str(error))
    where = "a file" if isinstance(vault.store(), FileStore) else "the keyring"
    return Finding("ok", "account", f"{found.name} can be used; the key of its secret is in {where}")


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())
