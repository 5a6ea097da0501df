"""What can go wrong with the embedded Kubernetes.

::

    LocalError
    ├── UsageError            the user can cure it: the message says how (exit code 1, one line)
    │   ├── NeedsRootError
    │   ├── ToolMissingError
    │   ├── UnknownComponentError
    │   └── NoSuchInstanceError
    ├── ComponentFailedError  a component ended or did not become healthy in time; carries its log's end
    ├── StuckProcessError     a process outlived SIGKILL
    ├── CommandFailedError    a system command failed (`shell`)
    ├── ApiError              the API server refused or was not reached (`api`)
    └── NotReadyError         node or DNS did not become ready in time (`workload`)
"""

from pathlib import Path


class LocalError(Exception):
    """Base of every error of `reside.local`."""


class UsageError(LocalError):
    """A mistake that the user can cure; the message names the cure."""


class NeedsRootError(UsageError):
    """A whole cluster was asked for by a user who may not make interfaces and mounts."""

    def __init__(self) -> None:
        super().__init__(
            "A whole local cluster needs root (network interfaces, mounts, containers): run it with sudo, "
            "or use --control-plane-only."
        )


class ToolMissingError(UsageError):
    """A binary was not found.

    Attributes:
        tool: The binary's name.
    """

    def __init__(self, tool: str, cure: str) -> None:
        super().__init__(f"{tool} was not found: {cure}")
        self.tool = tool


class UnknownComponentError(UsageError):
    """A component that this instance does not have."""

    def __init__(self, component: str, known: list[str]) -> None:
        super().__init__(f"There is no component {component!r}; this instance has: {', '.join(known)}.")
        self.component = component


class NoSuchInstanceError(UsageError):
    """The named instance was never brought up, or its state was deleted."""

    def __init__(self, name: str, state: Path) -> None:
        super().__init__(f"There is no local cluster {name!r} in {state}: run `reside local up` first.")
        self.name = name


class StuckProcessError(LocalError):
    """Processes are still there long after SIGKILL: they hang in the kernel."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(f"These processes did not end after SIGKILL, they hang in the kernel: {pids}")


class ComponentFailedError(LocalError):
    """A component ended, or did not become healthy in time.

    Attributes:
        component: Its name.
        log: Where its whole output is.
    """

    def __init__(self, component: str, reason: str, log: Path, tail: str) -> None:
        shown = f"\n{tail}" if tail else ""
        super().__init__(f"{component} {reason}. Its log is {log} and ends with:{shown or ' (nothing)'}")
        self.component = component
        self.log = log
