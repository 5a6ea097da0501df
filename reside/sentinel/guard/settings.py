"""Settings of the guard."""

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
        namespace: Kubernetes namespace of the cluster.
        state_dir: folder on a volume with the last validated stacks and the vault.
        passphrase: encrypts the vault.
        kubeconfig: path, for use outside of the cluster; None: the pod's service account.
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
    def vault_dir(self) -> Path:
        """Folder of the vault."""
        return self.state_dir / "vault"

    @property
    def earlier_vault(self) -> Path:
        """File of the vault of an earlier release."""
        return self.state_dir / "vault.json"
