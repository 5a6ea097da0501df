"""The leader's loop: when a load request is open."""

from __future__ import annotations

import pytest

from reside.model.entities import LoadRequest


@pytest.mark.parametrize(
    ("status", "version", "is_open"),
    [
        ("validating", None, True),
        ("requires-approval", None, True),
        ("approved", None, True),
        ("approved", 1, False),
        ("invalid", None, False),
        ("rejected", None, False),
    ],
)
def test_a_request_is_open_until_nothing_follows(status: str, version: int | None, is_open: bool) -> None:
    members = {"id": 1, "status": status, "image": "i", "owner": "o", "version": version}
    assert LoadRequest.model_validate(members).is_open is is_open
