"""The errors of the embedded Kubernetes.

::

    LocalError
    ├── UsageError            the user can solve it: the message says how (exit code 1, one line)
    │   ├── NeedsRootError
    │   ├── ToolMissingError
    │   ├── UnknownComponentError
    │   └── NoSuchClusterError
    ├── ComponentFailedError  a component exited or did not become healthy in time; contains the end of its log
    ├── StuckProcessError     a process has not ended after SIGKILL
    ├── CommandFailedError    a system command failed (`shell`)
    ├── ApiError              the API server refused a request or could not be reached (`api`)
    └── NotReadyError         node or DNS did not become ready in time (`workload`)
"""

from pathlib import Path


class LocalError(Exception):
    """Base of every error of `reside.local`."""


class UsageError(LocalError):
    """An error that the user can solve; the message says how."""


class NeedsRootError(UsageError):
    """A full cluster needs root, to create network interfaces and mounts."""

    def __init__(self) -> None:
        super().__init__(
            "A full local cluster needs root (network interfaces, mounts, containers): run it with sudo, "
            "or use --control-plane-only."
        )


class ToolMissingError(UsageError):
    """A binary was not found.

    Attributes:
        tool: name of the binary.
    """

    def __init__(self, tool: str, cure: str) -> None:
        super().__init__(f"{tool} was not found: {cure}")
        self.tool = tool


class UnknownComponentError(UsageError):
    """The local cluster has no component with this name."""

    def __init__(self, component: str, known: list[str]) -> None:
        super().__init__(f"There is no component {component!r}; this local cluster has {', '.join(known)}.")
        self.component = component


class NoSuchClusterError(UsageError):
    """The local cluster was never up, or its state was deleted."""

    def __init__(self, name: str, state: Path) -> None:
        super().__init__(f"There is no local cluster {name!r} in {state}: run `reside local up` first.")
        self.name = name


class StuckProcessError(LocalError):
    """Processes have not ended after SIGKILL: they hang in the kernel, or something starts them again."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(
            f"Processes {pids} exist after SIGKILL: end what starts them again, or restart the machine "
            "if they hang in the kernel."
        )


class ComponentFailedError(LocalError):
    """A component exited, or did not become healthy in time.

    Attributes:
        component: name of the component.
        log: file that contains its output.
    """

    def __init__(self, component: str, reason: str, log: Path, tail: str) -> None:
        shown = f"\n{tail}" if tail else ""
        super().__init__(f"{component} {reason}. Its log is {log} and ends with:{shown or ' (nothing)'}")
        self.component = component
        self.log = log
