"""Candidates of load requests: the replica that a preview shows, and its version."""

from __future__ import annotations

from unit.alpha.entities import digest, replica

from reside.alpha.candidate import next_version, with_version
from reside.model.entities import ApproveRequest, LoadRequest, Management

REQUEST = LoadRequest(id=7, status="validating", image="image", owner="co_z")


def approved() -> ApproveRequest:
    subject = replica("running")
    return ApproveRequest(info=subject.info, name="greeter", identity=subject.identity, digest=digest(9))


def test_a_candidate_of_a_new_instance_has_version_one() -> None:
    candidate = with_version(approved(), None, REQUEST)
    assert (candidate.name, candidate.current_version, candidate.agent_secret) == ("greeter", 1, None)


def test_a_candidate_of_an_existing_one_adds_a_version_and_enables_it() -> None:
    disabled = replica("stopped", management=Management(enabled=False, placement_group="big"))
    candidate = with_version(approved(), disabled, REQUEST)
    assert (candidate.current_version, [v.id for v in candidate.versions]) == (2, [1, 2])
    assert (candidate.management.enabled, candidate.management.placement_group) == (True, "big")
    assert (candidate.version(2).digest, candidate.version(2).request) == (digest(9), 7)


def test_versions_count_on_after_a_rollback() -> None:
    assert next_version(replica("running", "stopped", current=1)) == 3
    assert next_version(None) == 1
