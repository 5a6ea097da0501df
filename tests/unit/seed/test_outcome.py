"""The record of a bootstrap: what its data say after each step, error and interruption."""

from __future__ import annotations

import json

from reside.model.errors import InvalidInput
from reside.seed import outcome

T = [f"2026-11-25T00:00:0{second}Z" for second in range(10)]


def finished(data: dict[str, str], *names: str) -> dict[str, str]:
    for name in names:
        data = outcome.succeeded(outcome.began(data, name, T[1]), name, T[2])
    return data


def test_a_bootstrap_has_succeeded_when_each_phase_is_done() -> None:
    data = finished(outcome.pending(), *outcome.PHASES[:-1])
    assert data["result"] == "running"
    data = finished(data, outcome.PHASES[-1])
    assert data["result"] == "succeeded"
    assert json.loads(data["phases"])[0] == {"name": "storage", "result": "done", "started": T[1], "ended": T[2]}


def test_a_phase_that_runs_again_after_the_end_begins_anew() -> None:
    data = outcome.began(finished(outcome.pending(), *outcome.PHASES), "load", T[5])
    assert data["result"] == "running"
    (load,) = [each for each in outcome.phases(data) if each.name == "load"]
    assert (load.result, load.started, load.ended) == ("running", T[5], None)
    assert outcome.succeeded(data, "load", T[6])["result"] == "succeeded"


def test_an_interrupted_phase_keeps_the_time_of_its_first_start() -> None:
    data = outcome.began(outcome.began(outcome.pending(), "accounts", T[1]), "accounts", T[4])
    assert [each.started for each in outcome.phases(data)] == [T[1]]


def test_an_error_is_recorded_with_its_phase_and_a_cure_and_forgotten_by_the_next_start() -> None:
    data = outcome.failed(outcome.began(outcome.pending(), "storage", T[1]), "storage", "no StorageClass", T[3])
    assert (data["result"], data["error"]) == ("failed", "no StorageClass")
    assert "run the bootstrap again" in data["cure"]
    assert [(each.result, each.ended) for each in outcome.phases(data)] == [("failed", T[3])]
    again = outcome.began(data, "storage", T[4])
    assert (again["result"], again["error"], again["cure"]) == ("running", "", "")


def test_an_error_outside_of_all_phases_keeps_the_phases() -> None:
    before = finished(outcome.pending(), "storage")
    after = outcome.failed(before, None, "x" * 5000, T[3])
    assert after["phases"] == before["phases"]
    assert len(after["error"]) == 2000


def test_the_text_of_an_unexpected_error_is_not_published() -> None:
    assert outcome.error_text(InvalidInput("domain is missing: set it")) == "domain is missing: set it"
    assert "s3cret" not in outcome.error_text(ValueError("s3cret"))


def test_an_upgrade_of_a_cluster_without_a_record_succeeds_with_its_last_phase() -> None:
    data = finished({}, "load")
    assert outcome.began(data, "handover", T[3])["result"] == "running"
    assert finished(data, "handover")["result"] == "succeeded"


def test_a_second_apply_of_the_manifest_keeps_the_phases() -> None:
    data = finished(outcome.pending(), *outcome.PHASES[:-1]) | outcome.pending()
    assert finished(data, "handover")["result"] == "succeeded"


def test_phases_that_somebody_has_damaged_are_forgotten() -> None:
    for text in ("{", "[1]", '[{"name": 1}]', "null", '[{"name": "other", "result": "done", "started": ""}]'):
        assert outcome.phases({"phases": text}) == []


def test_an_error_before_the_first_step_replaces_the_result_of_an_earlier_bootstrap_only() -> None:
    before = finished(outcome.pending(), *outcome.PHASES)
    assert outcome.has_ended_since(before, T[2])
    assert not outcome.has_ended_since(before, T[3])
    assert not outcome.has_ended_since(outcome.began(before, "load", T[5]), T[4])
    assert outcome.has_ended_since(outcome.failed(before, "load", "no image", T[5]), T[4])


def test_a_bootstrap_with_nothing_to_do_ends_an_error_outside_of_the_phases() -> None:
    complete = finished(outcome.pending(), *outcome.PHASES)
    assert outcome.confirmed(complete) == complete
    assert outcome.confirmed(outcome.failed(complete, None, "wrong passphrase", T[3])) == complete | {
        "error": "",
        "cure": "",
    }
    broken = outcome.failed(complete, "load", "no image", T[3])
    assert outcome.confirmed(broken) == broken
