"""A file with what images say about themselves: anything else in it is as good as no file."""

from __future__ import annotations

import pytest

from reside.registry import ImageReference, Snapshot

DIGEST = "sha256:" + "0" * 64


def test_a_snapshot_round_trips() -> None:
    snapshot = Snapshot({"r.example/a": DIGEST}, {DIGEST: '{"label": "é"}'.encode()})
    assert Snapshot.from_json(snapshot.to_json()) == snapshot


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"latest": [], "documents": {}}', '{"latest": {}, "documents": {"a": 1}}', '"text"']
)
def test_a_file_that_is_no_snapshot_has_no_images(text: str) -> None:
    assert Snapshot.from_json(text) == Snapshot()


def test_a_tag_stands_for_its_digest_and_no_other_tag_does() -> None:
    snapshot = Snapshot({"r.example/a": DIGEST}, {DIGEST: b"{}"})
    image = ImageReference.parse("r.example/a")
    assert (snapshot.digest_of(image), snapshot.digest_of(image.pinned(DIGEST))) == (DIGEST, DIGEST)
    others = (image.tagged("v1"), image.pinned("sha256:" + "1" * 64), ImageReference.parse("r.example/b"))
    assert [snapshot.digest_of(other) for other in others] == [None] * 3


def test_images_are_found_by_other_names() -> None:
    snapshot = Snapshot({"r.example/a": DIGEST, "other.example/a": DIGEST}, {DIGEST: b"{}"})
    renamed = snapshot.renamed({"r.example/a": "q.example/b", "other.example/a": "other.example/a"}.__getitem__)
    assert renamed == Snapshot({"q.example/b": DIGEST, "other.example/a": DIGEST}, snapshot.documents)
