"""Settings of the engine, and its layout on disk.

`folder` contains `home` (PULUMI_HOME of all stacks), `workspaces/<stack>` (the settings of the stack with its
encryption salt, and its state), `salt.yaml`, `resident` (socket and log of the resident engine) and
`in-cluster.kubeconfig`. It must be on a volume: the state of a stack and its salt are useless without each other.
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
    """Settings of a `PulumiEngine`.

    Attributes:
        folder: the folder of all files; created if missing.
        passphrase: encrypts secrets in the state; the repr does not show it.
        namespace: the namespace of all objects.
        kubeconfig: the path of a kubeconfig; None uses the service account of the pod.
        context: the context of the kubeconfig; None uses its current context.
        engine: `resident` runs commands in a resident engine; the command line runs the commands that it does not
            serve, and all commands if it does not start. `cli` uses the command line only.
        resident: the name or path of the resident engine.
        pulumi: the name or path of the Pulumi command line.
        provider: the name or path of the Kubernetes provider.
        parallel: how many operations may run at the same time.
        processes: how many command lines may run at the same time; each uses a core and 250 MB for a second.
        backend: the address of an object store for the states, such as `s3://bucket/prefix?region=eu-central-1`; None
            keeps them in `folder`. Credentials are those of the environment.
        secrets_provider: encrypts secrets in new states: `passphrase`, or the key of a service, such as
            `awskms://alias/reside?region=eu-central-1`.
        deadline: seconds after which an operation is ended, because it waits for something that does not happen.
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
    deadline: float = 300.0
    backend: str | None = None
    secrets_provider: str = "passphrase"

    @property
    def home(self) -> Path:
        """The folder for PULUMI_HOME."""
        return self.folder / "home"

    @property
    def salt(self) -> Path:
        """The settings of a new stack: only the encryption salt, which all stacks share."""
        return self.folder / "salt.yaml"

    @property
    def in_cluster_kubeconfig(self) -> Path:
        """The kubeconfig that is written for the service account of the pod, if `kubeconfig` is None."""
        return self.folder / "in-cluster.kubeconfig"

    def workspace(self, stack: str) -> Path:
        """Return the folder in which the operations on a stack run, with its settings and its state."""
        return self.folder / "workspaces" / stack
