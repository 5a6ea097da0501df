"""Errors of reaching a cluster.

AccessError
├── KubectlMissingError   kubectl is not on PATH
└── PortForwardError      transient: a forward was not ready in time; contains kubectl's last output
"""

from typing import ClassVar


class AccessError(Exception):
    """Base of every error of `reside.access`.

    Attributes:
        transient: whether a retry may succeed although nothing is changed; see `reside.common.transience`.
    """

    transient: ClassVar[bool] = False


class KubectlMissingError(AccessError):
    """kubectl is not on PATH."""

    def __init__(self) -> None:
        super().__init__("kubectl was not found on PATH: run `make tools` in the checkout, or install it.")


class PortForwardError(AccessError):
    """A port-forward was not ready in time.

    Attributes:
        target: the target, as kubectl names it.
    """

    transient = True

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"No port-forward to {target}: {reason}")
        self.target = target
