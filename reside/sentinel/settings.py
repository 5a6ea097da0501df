"""Settings of the Sentinel, from the environment that Alpha renders into its pod."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads the annotations

from pydantic import Field, SecretStr

from reside.replica.settings import ReplicaSettings
from reside.sentinel.engine.settings import EngineKind  # noqa: TC001 - as above
from reside.sentinel.guard.settings import GuardSettings


class SentinelSettings(ReplicaSettings):
    """Configure the Sentinel, in addition to the settings of every replica.

    Each member is read from `RESIDE_<MEMBER>`, for example `RESIDE_STATE_DIR`.
    """

    namespace: str
    """Kubernetes namespace of the cluster."""
    state_dir: Path
    """Folder on a volume for the engine's state, the last validated stacks and the vault."""
    engine_passphrase: SecretStr
    """Passphrase that encrypts the engine's state and the vault."""
    kubeconfig: Path | None = None
    """Kubeconfig for use outside of the cluster; None: the pod's service account."""
    kube_context: str | None = None
    """Context of the kubeconfig; None: the current one."""
    engine: EngineKind = "resident"
    """Runner of operations: `resident`, Pulumi's engine kept running between them; `cli`, the stock command line."""
    operation_deadline_s: float = Field(default=300.0, gt=0)
    """Seconds after which an operation of the engine is ended, because it waits for something that does not happen."""
    careful: bool | None = None
    """True: careful mode, even if the Sentinel's data turns it off; None or False: as the data says."""

    @property
    def guard(self) -> GuardSettings:
        """Settings of the guard, which needs neither Jazz nor etcd."""
        return GuardSettings(self.namespace, self.state_dir, self.engine_passphrase, self.kubeconfig, self.kube_context)

    @property
    def engine_dir(self) -> Path:
        """Folder of the engine's home, state and workspaces, below `state_dir`."""
        return self.state_dir / "engine"
