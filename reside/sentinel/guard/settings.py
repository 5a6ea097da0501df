"""Settings of the guard: the cluster that it watches, and where it keeps what it restores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr


@dataclass(frozen=True)
class GuardSettings:
    """Configure a guard.

    Attributes:
        namespace: the namespace that is the cluster.
        state_dir: folder on a volume; holds the last validated stacks and the vault.
        passphrase: encrypts the vault.
        kubeconfig: path, for use outside the cluster; None: the pod's service account.
        kube_context: context of the kubeconfig; None: the current one.
    """

    namespace: str
    state_dir: Path
    passphrase: SecretStr
    kubeconfig: Path | None = None
    kube_context: str | None = None

    @property
    def stacks_dir(self) -> Path:
        """Folder of the last validated stacks."""
        return self.state_dir / "stacks"

    @property
    def vault_file(self) -> Path:
        """File of the vault."""
        return self.state_dir / "vault.json"
