"""What can go wrong in the Sentinel, and whether trying again helps.

    ResideError
    ├── NotReady
    │   └── ClusterUnavailable   the Kubernetes API does not answer, or is overloaded; come back later
    └── Conflict
        ├── ForeignObjects       objects exist that are not ours: somebody must delete or label them
        └── ClusterRefused       the Kubernetes API answered no: the manifest, or our rights, must change

`judge` says when a queue retries. Only errors that the author of a stack alone can cure are not retried, since the cure
is a change, which adds the key again. A missing permission may be granted without a change of the stack.
"""

from __future__ import annotations

from reside.common import workqueue
from reside.common.workqueue import Verdict
from reside.model.errors import Conflict, InvalidInput, NotReady


def judge(error: Exception) -> Verdict:
    """Return what a queue of the Sentinel does after an error."""
    return Verdict.WAIT if isinstance(error, InvalidInput) else workqueue.judge(error)


class ClusterUnavailable(NotReady):
    """The Kubernetes API can't be reached or asks to come back later."""


class ClusterRefused(Conflict):
    """The Kubernetes API refused a request.

    Attributes:
        status: HTTP status of the answer.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ForeignObjects(Conflict):
    """Objects that the stack wants exist already and are not ours; the message names them and their managers."""


class PolicyViolated(InvalidInput):
    """The stack breaks rules; the message names each rule and object.

    Attributes:
        broken: one sentence a violation.
    """

    def __init__(self, broken: tuple[str, ...]) -> None:
        super().__init__("; ".join(broken))
        self.broken = broken
