"""Errors of the Sentinel, and whether a retry can help.

    ResideError
    ├── NotReady
    │   └── ClusterUnavailable   the Kubernetes API can't be reached or is overloaded: retry
    └── Conflict
        ├── ForeignObjects       objects exist that are not ours: an operator must delete or label them
        └── ClusterRefused       the Kubernetes API refused a request: change the object or our permissions

`judge` decides whether a queue retries. An error that only the author of a stack can fix (`InvalidInput`, and what has
`needs_change`) is not retried, because the fix is a change, which adds the key again. A missing permission is retried:
it may be granted without a change of the stack.
"""

from __future__ import annotations

from reside.common import workqueue
from reside.common.transience import is_expected, place_of, safe_text
from reside.common.workqueue import Verdict
from reside.model.errors import Conflict, InvalidInput, NotReady


def judge(error: Exception) -> Verdict:
    """Return what a queue of the Sentinel does after `error`."""
    needs_change = isinstance(error, InvalidInput) or getattr(error, "needs_change", False)
    return Verdict.WAIT if needs_change else workqueue.judge(error)


def fault_text(error: Exception) -> str:
    """Return what a report says about `error`; the text of an unexpected error is left out, as it may hold secrets."""
    if is_expected(error):
        return safe_text(error)
    return (
        f"unexpected {type(error).__name__} at {place_of(error)}, which is a bug of the Sentinel: other stacks are not "
        "affected, and this one is tried again after growing pauses; change it, or report the bug"
    )


class ClusterUnavailable(NotReady):
    """The Kubernetes API can't be reached or asks for a later retry."""


class ClusterRefused(Conflict):
    """The Kubernetes API refused a request.

    Attributes:
        status: HTTP status of the response.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ForeignObjects(Conflict):
    """Objects of a stack exist already and are not ours; the message names them and their field managers."""


class PolicyViolated(InvalidInput):
    """A stack violates the policy; the message names each rule and object.

    Attributes:
        violations: one sentence for each violation.
    """

    def __init__(self, violations: tuple[str, ...]) -> None:
        super().__init__("; ".join(violations))
        self.violations = violations
