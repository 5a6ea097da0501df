"""Image references: their syntax, their meaning, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.registry import ImageReference, InvalidReference

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ghcr.io/exeteres/reside", ImageReference("ghcr.io", "exeteres/reside", "latest", None)),
        ("ghcr.io/a/b:v1", ImageReference("ghcr.io", "a/b", "v1", None)),
        ("127.0.0.1:5000/a", ImageReference("127.0.0.1:5000", "a", "latest", None)),
        ("localhost/a/b_c-d.e", ImageReference("localhost", "a/b_c-d.e", "latest", None)),
        (f"ghcr.io/a/b@{DIGEST}", ImageReference("ghcr.io", "a/b", None, DIGEST)),
        (f"ghcr.io/a/b:v1@{DIGEST}", ImageReference("ghcr.io", "a/b", "v1", DIGEST)),
        ("ghcr.io/contracts/alpha.v1", ImageReference("ghcr.io", "contracts/alpha.v1", "latest", None)),
    ],
)
def test_a_full_name_is_parsed(text: str, expected: ImageReference) -> None:
    assert ImageReference.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no registry host"),
        ("nginx", "has no registry host"),
        ("nginx:1.27", "has no registry host"),
        ("library/nginx", "has no registry host"),
        ("ghcr.io", "has no registry host"),
        ("ghcr.io/", "is not a repository"),
        ("ghcr.io/A/b", "is not a repository"),
        ("ghcr.io/a//b", "is not a repository"),
        ("ghcr.io/../b", "is not a repository"),
        ("https://ghcr.io/a", "is not a registry host"),
        ("user@ghcr.io/a", "its digest must be"),
        ("ghcr.io/a:", "its tag must be"),
        ("ghcr.io/a:-x", "its tag must be"),
        ("ghcr.io/a b", "is not a repository"),
        ("ghcr.io/a@sha256:12", "its digest must be"),
        ("ghcr.io/a@md5:" + "0" * 64, "its digest must be"),
        ("ghcr.io/" + "a" * 300, "is not a repository"),
    ],
)
def test_an_invalid_reference_is_refused_and_named(text: str, reason: str) -> None:
    with pytest.raises(InvalidReference, match=reason) as caught:
        ImageReference.parse(text)
    assert repr(text) in str(caught.value)


def test_the_identity_has_neither_tag_nor_digest() -> None:
    assert ImageReference.parse(f"ghcr.io/a/b:v1@{DIGEST}").identity == "ghcr.io/a/b"


def test_a_pinned_reference_drops_its_tag() -> None:
    pinned = ImageReference.parse("ghcr.io/a/b:v1").pinned(DIGEST)
    assert (str(pinned), pinned.target) == (f"ghcr.io/a/b@{DIGEST}", DIGEST)
    with pytest.raises(InvalidReference, match="its digest must be"):
        pinned.pinned("latest")


def test_a_tagged_reference_drops_its_digest() -> None:
    tagged = ImageReference.parse(f"ghcr.io/a/b@{DIGEST}").tagged("v2")
    assert (str(tagged), tagged.target) == ("ghcr.io/a/b:v2", "v2")
    with pytest.raises(InvalidReference, match="its tag must be"):
        tagged.tagged("not a tag")


@given(st.text(max_size=80))
def test_any_text_is_either_refused_or_survives_a_round_trip(text: str) -> None:
    try:
        reference = ImageReference.parse(text)
    except InvalidReference:
        return
    assert ImageReference.parse(str(reference)) == reference
