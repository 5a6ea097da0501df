"""Settings of the engine, and where it keeps what on disk.

Below ``folder``: ``home`` (PULUMI_HOME: one for all stacks), ``state`` (the file backend), ``workspaces/<stack>``
(the stack's settings with its encryption salt), ``salt.yaml``, ``resident`` (socket and log of the resident engine),
``in-cluster.kubeconfig``. The folder belongs on a volume: state and workspaces live and die together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "reside"
EngineKind = Literal["resident", "cli"]


@dataclass(frozen=True)
class EngineSettings:
    """What the engine needs to know.

    Attributes:
        folder: Where home, state and workspaces stand; made if missing.
        passphrase: Encrypts secrets in the state; never shown in a repr.
        namespace: Namespace of all objects.
        kubeconfig: Path of a kubeconfig; None uses the pod's service account.
        context: Context of the kubeconfig; None uses its current one.
        engine: ``resident``: Pulumi's engine kept alive between operations; the command line runs what it does not
            serve, and everything while it does not come up. ``cli``: the command line alone.
        resident: Name or path of the resident engine.
        pulumi: Name or path of the Pulumi command line.
        provider: Name or path of the Kubernetes provider.
        parallel: How many operations may run at the same time.
        processes: How many command lines may run at the same time: each takes a core and 250 MB for a second.
    """

    folder: Path
    passphrase: str = field(repr=False)
    namespace: str
    kubeconfig: Path | None = None
    context: str | None = None
    engine: EngineKind = "resident"
    resident: str = "reside-engine"
    pulumi: str = "pulumi"
    provider: str = "pulumi-resource-kubernetes"
    parallel: int = 4
    processes: int = 2

    @property
    def home(self) -> Path:
        """PULUMI_HOME."""
        return self.folder / "home"

    @property
    def salt(self) -> Path:
        """Settings of a stack that was just made: nothing but its encryption salt, which all stacks share."""
        return self.folder / "salt.yaml"

    @property
    def in_cluster_kubeconfig(self) -> Path:
        """The kubeconfig that the adapter writes for the pod's service account, used when none is set."""
        return self.folder / "in-cluster.kubeconfig"

    def workspace(self, stack: str) -> Path:
        """Folder from which the stack's operations run, with its settings and its state."""
        return self.folder / "workspaces" / stack
