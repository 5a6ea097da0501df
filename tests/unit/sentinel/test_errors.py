"""What a queue of the Sentinel does after an error."""

from __future__ import annotations

import pytest

from reside.common.workqueue import Verdict
from reside.model.errors import InvalidInput, NotAllowed, NotReady
from reside.sentinel.engine.errors import ApplyBlocked, ApplyRejected
from reside.sentinel.errors import ClusterRefused, PolicyViolated, fault_text, judge


@pytest.mark.parametrize("error", [InvalidInput("malformed"), PolicyViolated(("a rule",)), ApplyRejected("no")])
def test_an_error_that_only_the_author_can_fix_waits_for_a_change(error: Exception) -> None:
    assert judge(error) is Verdict.WAIT


@pytest.mark.parametrize(
    "error", [NotReady("not yet"), NotAllowed("no permission"), ClusterRefused("no", 403), ApplyBlocked("a quota")]
)
def test_an_error_that_others_can_fix_is_retried(error: Exception) -> None:
    assert judge(error) is Verdict.RETRY


def test_a_bug_puts_its_key_off_and_its_text_is_not_shown() -> None:
    with pytest.raises(KeyError) as raised:
        {}["a secret"]
    assert judge(raised.value) is Verdict.PUT_OFF
    assert "unexpected KeyError at test_errors.py:" in fault_text(raised.value)
    assert "a secret" not in fault_text(raised.value)


def test_an_expected_error_is_reported_in_a_form_that_can_be_written() -> None:
    assert fault_text(NotReady("stack \ud800: later")) == "stack \\ud800: later"
