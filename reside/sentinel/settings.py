"""Settings of the Sentinel, from the environment that Alpha renders into its pod."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads the annotations

from pydantic import SecretStr  # noqa: TC002 - as above

from reside.replica.settings import ReplicaSettings
from reside.sentinel.engine.settings import EngineKind  # noqa: TC001 - as above


class SentinelSettings(ReplicaSettings):
    """What the Sentinel must know beyond what every replica does.

    Each member is read from ``RESIDE_<MEMBER>``, e.g. ``RESIDE_STATE_DIR``.
    """

    namespace: str
    """The Kubernetes namespace that is the cluster."""
    state_dir: Path
    """Folder on a volume: the engine's state, the last validated stacks, the vault."""
    engine_passphrase: SecretStr
    """Encrypts the engine's state and the vault."""
    kubeconfig: Path | None = None
    """Kubeconfig to use from outside of the cluster; None: the pod's service account."""
    kube_context: str | None = None
    """Context of the kubeconfig; None: its current one."""
    engine: EngineKind = "resident"
    """What runs operations: ``resident``, Pulumi's engine kept alive between them; ``cli``, the stock command line."""
    careful: bool | None = None
    """True: delete nothing unknown, whatever the Sentinel's data says; None or False: as the data says."""

    @property
    def stacks_dir(self) -> Path:
        """Folder of the last validated stacks."""
        return self.state_dir / "stacks"

    @property
    def engine_dir(self) -> Path:
        """Folder of the engine's home, state and workspaces."""
        return self.state_dir / "engine"

    @property
    def vault_file(self) -> Path:
        """The vault."""
        return self.state_dir / "vault.json"
