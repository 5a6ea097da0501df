"""What can go wrong with a kubeconfig or a port-forward.

::

    KubeError
    ├── KubeconfigError       a kubeconfig that is missing, broken or lacks the context
    ├── KubectlMissingError   no kubectl
    └── PortForwardError      a forward that did not come up; carries what kubectl said last
"""


class KubeError(Exception):
    """Base of every error of `reside.kube`."""


class KubeconfigError(KubeError):
    """A kubeconfig is missing, broken, or lacks what was asked for."""


class KubectlMissingError(KubeError):
    """There is no kubectl on PATH."""

    def __init__(self) -> None:
        super().__init__("kubectl was not found on PATH: run `make tools` in the checkout, or install it.")


class PortForwardError(KubeError):
    """A port-forward did not come up in time.

    Attributes:
        target: What was to be forwarded to.
    """

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(f"No port-forward to {target}: {reason}")
        self.target = target
