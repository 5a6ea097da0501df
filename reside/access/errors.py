"""What can go wrong on the way to a cluster.

::

    AccessError
    ├── KubectlMissingError   no kubectl
    └── PortForwardError      a forward that did not come up; carries what kubectl said last
"""


class AccessError(Exception):
    """Base of every error of `reside.access`."""


class KubectlMissingError(AccessError):
    """There is no kubectl on PATH."""

    def __init__(self) -> None:
        super().__init__("kubectl was not found on PATH: run `make tools` in the checkout, or install it.")


class PortForwardError(AccessError):
    """A port-forward did not come up in time.

    Attributes:
        target: What was to be forwarded to.
    """

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"No port-forward to {target}: {reason}")
        self.target = target
