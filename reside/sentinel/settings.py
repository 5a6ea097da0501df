"""Settings of the Sentinel, from the environment that Alpha renders into its pod."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads the annotations

from pydantic import SecretStr  # noqa: TC002 - as above

from reside.replica.settings import ReplicaSettings
from reside.sentinel.engine.settings import EngineKind  # noqa: TC001 - as above
from reside.sentinel.guard.settings import GuardSettings


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
    def guard(self) -> GuardSettings:
        """Settings of the part that needs neither Jazz nor etcd."""
        return GuardSettings(self.namespace, self.state_dir, self.engine_passphrase, self.kubeconfig, self.kube_context)

    @property
    def engine_dir(self) -> Path:
        """Folder of the engine's home, state and workspaces."""
        return self.state_dir / "engine"
