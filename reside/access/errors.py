"""What can go wrong on the way to a cluster.

::

    AccessError
    ├── KubectlMissingError   no kubectl
    └── PortForwardError      transient: a forward that did not come up; carries what kubectl said last
"""

from typing import ClassVar


class AccessError(Exception):
    """Base of every error of `reside.access`.

    Attributes:
        transient: Whether another attempt may succeed although nobody acts; see `reside.common.transience`.
    """

    transient: ClassVar[bool] = False


class KubectlMissingError(AccessError):
    """There is no kubectl on PATH."""

    def __init__(self) -> None:
        super().__init__("kubectl was not found on PATH: run `make tools` in the checkout, or install it.")


class PortForwardError(AccessError):
    """A port-forward did not come up in time.

    Attributes:
        target: What was to be forwarded to.
    """

    transient = True

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"No port-forward to {target}: {reason}")
        self.target = target
