"""Prepares the folder of the engine, and the environment of the processes that it starts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from reside.model.constants import PROVIDER_VERSION
from reside.sentinel.engine.errors import EngineBroken
from reside.sentinel.engine.in_cluster import write_kubeconfig

if TYPE_CHECKING:
    from reside.sentinel.engine.settings import EngineSettings


def prepare(settings: EngineSettings) -> None:
    """Create the folders, and link the provider where the engine looks for plugins.

    Raises:
        EngineBroken: the command line or the provider is missing.
    """
    for folder in (settings.folder, settings.home):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.kubeconfig is None:
        write_kubeconfig(settings.in_cluster_kubeconfig, settings.namespace, os.environ)
    # The engine would write a debug log of each operation into a folder of this name, at first without encryption.
    # A file of the same name prevents that.
    (settings.home / "logs").touch()
    if shutil.which(settings.pulumi) is None:
        raise EngineBroken(f"{settings.pulumi} is missing: run `make tools`, or correct `EngineSettings.pulumi`")
    provider = shutil.which(settings.provider)
    if provider is None:
        raise EngineBroken(f"{settings.provider} is missing: run `make tools`, or correct `EngineSettings.provider`")
    plugin = settings.home / "plugins" / f"resource-kubernetes-v{PROVIDER_VERSION}"
    plugin.mkdir(parents=True, exist_ok=True)
    link, target = plugin / "pulumi-resource-kubernetes", Path(provider).resolve()
    if not link.is_symlink() or link.readlink() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def environment(settings: EngineSettings) -> dict[str, str]:
    """Return the variables that are added to our own environment; only they contain the passphrase."""
    folder = Path(settings.pulumi).parent
    path = os.environ.get("PATH", os.defpath)
    return {
        "PATH": f"{folder}{os.pathsep}{path}" if folder.is_absolute() else path,
        # The user id of a pod may be missing in /etc/passwd; then the engine takes the user from these variables.
        "USER": os.environ.get("USER", "reside"),
        "HOME": os.environ.get("HOME", str(settings.home)),
        "PULUMI_HOME": str(settings.home),
        "PULUMI_BACKEND_URL": "",  # the project file of each stack names its backend
        "PULUMI_CONFIG_PASSPHRASE": settings.passphrase,
        "PULUMI_DEBUG_COMMANDS": "true",  # enables --event-log
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        "PULUMI_DIY_BACKEND_NO_LEGACY_WARNING": "true",  # which costs a look at the backend
        # The state is written once, at the end of an operation. One that is killed leaves its mark; the next one
        # refreshes the state, and adopts what it does not find there (see `stack_files`).
        "PULUMI_SKIP_CHECKPOINTS": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        # One provider process serves all operations, so its default limit of 50 requests a second is too low. The API
        # server limits its clients itself (API priority and fairness).
        "PULUMI_K8S_CLIENT_QPS": "1000",
        "PULUMI_K8S_CLIENT_BURST": "2000",
        "KUBECONFIG": str(settings.kubeconfig or settings.in_cluster_kubeconfig),
    }
