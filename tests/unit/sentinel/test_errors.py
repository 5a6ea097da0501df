"""What a queue of the Sentinel does after an error."""

from __future__ import annotations

import pytest

from reside.common.workqueue import Verdict
from reside.model.errors import InvalidInput, NotAllowed, NotReady
from reside.sentinel.engine.errors import ApplyRejected
from reside.sentinel.errors import ClusterRefused, PolicyViolated, judge


@pytest.mark.parametrize("error", [InvalidInput("malformed"), PolicyViolated(("a rule",))])
def test_an_error_that_only_the_author_can_fix_waits_for_a_change(error: Exception) -> None:
    assert judge(error) is Verdict.WAIT


@pytest.mark.parametrize(
    "error", [NotReady("not yet"), NotAllowed("no permission"), ClusterRefused("no", 403), ApplyRejected("no")]
)
def test_an_error_that_others_can_fix_is_retried(error: Exception) -> None:
    assert judge(error) is Verdict.RETRY


def test_a_bug_ends_the_queue() -> None:
    assert judge(KeyError("bug")) is Verdict.RAISE
