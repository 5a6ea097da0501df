"""Settings of the Sentinel, from the environment that Alpha renders into its pod."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - pydantic reads the annotations
from typing import Final

from pydantic import Field, SecretStr

from reside.model.backends import PASSPHRASE, VOLUME, SecretsProvider, StateBackend
from reside.policy.rules import Policy, policy_of
from reside.replica.settings import ReplicaSettings
from reside.sentinel.engine.settings import EngineKind  # noqa: TC001 - as above
from reside.sentinel.guard.settings import GuardSettings
from reside.sentinel.policy_document import PolicyDocument  # noqa: TC001 - as above

LANES_PER_CORE: Final = 2
"""Operations for each core: an operation waits for the API server and the volume for about half of its time."""


def default_lanes() -> int:
    """Return the number of lanes for the cores that this process may use."""
    return LANES_PER_CORE * len(os.sched_getaffinity(0))


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
    lanes: int = Field(default_factory=default_lanes, ge=1, le=256)
    """How many stacks are applied or removed in parallel."""
    preview_lanes: int = Field(default_factory=default_lanes, ge=1, le=256)
    """How many previews the engine makes in parallel, beside them."""
    state_backend: StateBackend | None = None
    """Object store for the engine's states, such as `s3://bucket/prefix?region=eu-central-1`; None, or `volume`: in
    `state_dir`. Credentials are those of the environment."""
    secrets_provider: SecretsProvider = PASSPHRASE
    """What encrypts secrets in new and moved states: the passphrase, or a key such as `awskms://alias/reside?region=…`."""
    careful: bool | None = None
    """True: careful mode, even if the Sentinel's data turns it off; None or False: as the data says."""

    policy: PolicyDocument = Field(default_factory=dict)
    """Levels of the policy's rules, and the rules of an organisation's pack, as JSON."""

    @property
    def rules(self) -> Policy:
        """The policy that the settings describe."""
        return policy_of(self.policy)

    @property
    def guard(self) -> GuardSettings:
        """Settings of the guard, which needs neither Jazz nor etcd."""
        return GuardSettings(self.namespace, self.state_dir, self.engine_passphrase, self.kubeconfig, self.kube_context)

    @property
    def store(self) -> str | None:
        """Address of the object store for the engine's states; None: they are in `state_dir`."""
        return None if self.state_backend == VOLUME else self.state_backend

    @property
    def engine_dir(self) -> Path:
        """Folder of the engine's home, state and workspaces, below `state_dir`."""
        return self.state_dir / "engine"
