"""Candidates of load requests: the replica that a preview shows, its version, and the preview's key."""

from __future__ import annotations

import pytest
from unit.alpha.entities import digest, replica

from reside.alpha.previews import next_version, preview_key, with_version
from reside.alpha.sentinel import parse_preview, parse_report
from reside.model.entities import (
    ApproveRequest,
    Management,
)
from reside.model.stacks import DesiredStack, ObjectReport, StackPreview, StackReport


def test_a_report_keeps_what_is_well_formed() -> None:
    good = ObjectReport("updated", {"kind": "Service"})
    members = {"revision": "r", "error": "", "Service/a": good.document(), "Service/b": "nonsense", "other": 1}
    assert parse_report(members) == StackReport("r", None, {"Service/a": good})
    assert parse_report({"revision": 3, "error": ["x"]}) == StackReport()


@pytest.mark.parametrize("document", [None, "x", {}, {"stack": "s"}, {"stack": "s", "revision": "r", "changes": 3}])
def test_a_preview_that_is_none_is_no_preview(document: object) -> None:
    assert parse_preview(document) is None


def test_a_preview_may_carry_more_than_we_know() -> None:
    preview = StackPreview("s", "r")
    assert parse_preview(preview.document() | {"candidate": "co_z"}) == preview


def approved() -> ApproveRequest:
    subject = replica("running")
    return ApproveRequest(info=subject.info, name="greeter", identity=subject.identity, digest=digest(9))


def test_a_candidate_of_a_new_instance_has_version_one() -> None:
    candidate = with_version(approved(), None, "image")
    assert (candidate.name, candidate.current_version, candidate.agent_secret) == ("greeter", 1, None)


def test_a_candidate_of_an_existing_one_adds_a_version_and_enables_it() -> None:
    disabled = replica("stopped", management=Management(enabled=False, placement_group="big"))
    candidate = with_version(approved(), disabled, "image")
    assert (candidate.current_version, [v.id for v in candidate.versions]) == (2, [1, 2])
    assert (candidate.management.enabled, candidate.management.placement_group) == (True, "big")
    assert candidate.version(2).digest == digest(9)


def test_versions_count_on_after_a_rollback() -> None:
    assert next_version(replica("running", "stopped", current=1)) == 3
    assert next_version(None) == 1


def test_the_keys_of_two_requests_never_share_a_prefix() -> None:
    stack = DesiredStack("s", "o", ())
    assert not preview_key(11, stack).startswith(preview_key(1, stack)[: len("load-request.1.")])
