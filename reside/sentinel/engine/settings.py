"""Settings of the command-line engine, and where it keeps what on disk.

Below ``folder``: ``home`` (PULUMI_HOME: one for all stacks), ``state`` (the file backend), ``workspaces/<stack>``
(the stack's settings with its encryption salt), ``in-cluster.kubeconfig``. The folder belongs on a volume: state and
workspaces live and die together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROVIDER_VERSION = "4.25.0"
PROJECT = "reside"


@dataclass(frozen=True)
class EngineSettings:
    """What the engine needs to know.

    Attributes:
        folder: Where home, state and workspaces stand; made if missing.
        passphrase: Encrypts secrets in the state; never shown in a repr.
        namespace: Namespace of all objects.
        kubeconfig: Path of a kubeconfig; None uses the pod's service account.
        context: Context of the kubeconfig; None uses its current one.
        pulumi: Name or path of the Pulumi command line.
        provider: Name or path of the Kubernetes provider.
        parallel: How many operations may run at the same time; each takes about 250 MB while it runs.
        worker_operations: After how many operations a worker process is replaced, which bounds what it may leak.
    """

    folder: Path
    passphrase: str = field(repr=False)
    namespace: str
    kubeconfig: Path | None = None
    context: str | None = None
    pulumi: str = "pulumi"
    provider: str = "pulumi-resource-kubernetes"
    parallel: int = 4
    worker_operations: int = 200

    @property
    def home(self) -> Path:
        """PULUMI_HOME."""
        return self.folder / "home"

    @property
    def state(self) -> Path:
        """Folder of the file backend."""
        return self.folder / "state"

    @property
    def in_cluster_kubeconfig(self) -> Path:
        """The kubeconfig that the adapter writes for the pod's service account, used when none is set."""
        return self.folder / "in-cluster.kubeconfig"

    def workspace(self, stack: str) -> Path:
        """Folder from which the stack's operations run."""
        return self.folder / "workspaces" / stack

    def document(self) -> dict[str, Any]:
        """JSON form, passphrase included: goes through a worker's standard input only."""
        return {
            "folder": str(self.folder),
            "passphrase": self.passphrase,
            "namespace": self.namespace,
            "kubeconfig": str(self.kubeconfig) if self.kubeconfig else None,
            "context": self.context,
            "pulumi": self.pulumi,
            "provider": self.provider,
            "parallel": self.parallel,
            "worker_operations": self.worker_operations,
        }

    @staticmethod
    def parse(data: dict[str, Any]) -> EngineSettings:
        """From :meth:`document`."""
        kubeconfig = Path(data["kubeconfig"]) if data["kubeconfig"] else None
        return EngineSettings(**{**data, "folder": Path(data["folder"]), "kubeconfig": kubeconfig})
