"""What engines find on disk and in their environment: folders, the provider's place, the passphrase."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from reside.model.constants import PROVIDER_VERSION
from reside.sentinel.engine.errors import EngineBroken
from reside.sentinel.engine.in_cluster import write_kubeconfig
from reside.sentinel.engine.store import move_states

if TYPE_CHECKING:
    from reside.sentinel.engine.settings import EngineSettings


def prepare(settings: EngineSettings) -> None:
    """Make the folders, and put the provider where the engine looks for plugins.

    Raises:
        EngineBroken: A binary is missing.
    """
    for folder in (settings.folder, settings.home):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    move_states(settings)
    if settings.kubeconfig is None:
        write_kubeconfig(settings.in_cluster_kubeconfig, settings.namespace, os.environ)
    # The engine would keep a debug log of every run below this name, unencrypted at first; a file turns that off.
    (settings.home / "logs").touch()
    if shutil.which(settings.pulumi) is None:
        raise EngineBroken(f"{settings.pulumi} is not there: run tools/build.py, or correct the engine's settings")
    provider = shutil.which(settings.provider)
    if provider is None:
        raise EngineBroken(f"{settings.provider} is not there: run tools/build.py, or correct the engine's settings")
    plugin = settings.home / "plugins" / f"resource-kubernetes-v{PROVIDER_VERSION}"
    plugin.mkdir(parents=True, exist_ok=True)
    link, target = plugin / "pulumi-resource-kubernetes", Path(provider).resolve()
    if not link.is_symlink() or link.readlink() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def environment(settings: EngineSettings) -> dict[str, str]:
    """What engines get besides our own environment; the only place where the passphrase goes."""
    folder = Path(settings.pulumi).parent
    path = os.environ.get("PATH", os.defpath)
    return {
        "PATH": f"{folder}{os.pathsep}{path}" if folder.is_absolute() else path,
        # A pod's user id need not be in /etc/passwd; the engine then takes its user from these.
        "USER": os.environ.get("USER", "reside"),
        "HOME": os.environ.get("HOME", str(settings.home)),
        "PULUMI_HOME": str(settings.home),
        "PULUMI_BACKEND_URL": "",  # each stack's project names its own
        "PULUMI_CONFIG_PASSPHRASE": settings.passphrase,
        "PULUMI_DEBUG_COMMANDS": "true",  # the event log is hidden behind it
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        # One provider serves all operations: its own limit of 50 requests a second is meant for one. The API server
        # keeps its clients apart by itself (priority and fairness).
        "PULUMI_K8S_CLIENT_QPS": "1000",
        "PULUMI_K8S_CLIENT_BURST": "2000",
        "KUBECONFIG": str(settings.kubeconfig or settings.in_cluster_kubeconfig),
    }
