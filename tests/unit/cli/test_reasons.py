"""The table of the reasons that tests provoke is complete, and `reside explain` knows each of them."""

from __future__ import annotations

import pytest
from support.reasons import REASONS, Reason

from reside.cli import main


def test_at_least_the_fifteen_reasons_for_not_running_are_provoked() -> None:
    names = [reason.name for reason in REASONS]
    assert len(set(names)) == len(names) >= 15
    assert {
        *("image pull", "no such image", "crash loop", "failing probe", "unschedulable", "quota", "runAsNonRoot"),
        *("missing grant", "missing requirement", "waiting for approval", "expired request", "refused policy"),
        *("conflict", "lease lost", "Jazz away"),
    } <= set(names)


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: str(reason.name))
def test_explain_names_a_reason_with_its_cure(reason: Reason, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", reason.code]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(f"{reason.code}: ")
    assert f"Cure: {reason.cure}" in said
