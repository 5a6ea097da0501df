"""Credentials of registries: what is taken from a Docker configuration, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reside.cli.registry_login import read_login
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "cm9ib3Q6aHVudGVyMg=="


def test_passwords_are_taken_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    document = {
        "auths": {"ghcr.io": {"auth": SECRET}, "quay.io": {}},
        "credsStore": "desktop",
        "HttpHeaders": {"a": "b"},
    }
    path.write_text(json.dumps(document))
    assert json.loads(read_login(path)) == {"auths": {"ghcr.io": {"auth": SECRET}}}


def test_user_and_password_are_taken_in_the_form_that_alpha_reads(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"auths": {"ghcr.io": {"username": "robot", "password": "hunter2"}}}))
    assert json.loads(read_login(path)) == {"auths": {"ghcr.io": {"auth": SECRET}}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"auths": {"ghcr.io": {}}, "credsStore": "desktop"}', "a credential helper keeps it"),
        ("{}", "has no password of a registry"),
        ("[]", "has no password of a registry"),
        ('{"auths": []}', "has no password of a registry"),
        ('{"auths": ["a"]}', "has no password of a registry"),
        ('{"auths": {"ghcr.io": {"auth": "bm9jb2xvbg=="}}}', "login of ghcr.io is malformed"),
        ('{"auths": {"ghcr.io": {"auth": 5}}}', "login of ghcr.io is malformed"),
        ('{"auths": {"ghcr.io": {"auth": "' + SECRET + '", "identitytoken": "t"}}}', "identity token for ghcr.io"),
        ('{"auths": {"a": {"auth": "' + SECRET, "is not JSON"),
    ],
)
def test_a_file_without_usable_passwords_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=fault) as caught:
        read_login(path)
    assert SECRET not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"config.json can't be read: No such file"):
        read_login(tmp_path / "config.json")
