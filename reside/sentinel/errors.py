"""What can go wrong in the Sentinel, and whether trying again helps.

    ResideError
    ├── NotReady
    │   └── ClusterUnavailable   the Kubernetes API does not answer, or is overloaded; come back later
    └── Conflict
        ├── ForeignObjects       objects exist that are not ours: somebody must delete or label them
        └── ClusterRefused       the Kubernetes API answered no: the manifest, or our rights, must change

Terminal are only errors that the declarer alone can cure, since then a change comes: everything else is tried again.
"""

from __future__ import annotations

from reside.model.errors import Conflict, InvalidInput, NotReady

TERMINAL: tuple[type[Exception], ...] = (InvalidInput,)
"""Errors after which a stack waits for a change of its declaration. A missing permission may still be given."""


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
