"""Secrets are masked in texts."""

from __future__ import annotations

from reside.common.masking import mask, mask_values


def test_a_secret_is_masked_as_a_whole_and_line_by_line() -> None:
    assert mask("first line, second line, both: first line\nsecond line.", ["first line\nsecond line"]) == (
        "[secret], [secret], both: [secret]."
    )


def test_short_lines_of_a_secret_are_not_masked() -> None:
    assert mask("an abc", ["abc\nhunter22"]) == "an abc"


def test_masked_members_stay_visible() -> None:
    assert mask_values(["password", "user"]) == {"password": "***", "user": "***"}
