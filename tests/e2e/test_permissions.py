"""People get permissions of replicas with `reside permission`, and lose them; a lost super admin is replaced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually_sync

from reside.cli.cluster import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)

GREET = ("greeter", "greet")


@pytest.fixture(scope="module")
def user(platform: Platform) -> str:
    """Return the account of another person, who has connected once."""
    other = platform.as_other_operator("guest")
    refused = other.reside("replica", "list", check=False)
    assert (refused.returncode, "the account needs replica:read:all" in refused.stderr) == (1, True)
    return other.accounts()["guest"]


def explained(platform: Platform, account: str, *permission: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        platform.reside("permission", "explain", account, *permission, "--output", "json").stdout
    )
    return found


def test_a_user_is_granted_a_permission_which_is_explained_and_revoked(platform: Platform, user: str) -> None:
    assert explained(platform, user, *GREET)["inForce"] is False
    platform.reside("permission", "grant", user, *GREET, "--reason", "on call")
    eventually_sync("the grant", lambda: explained(platform, user, *GREET)["inForce"])
    lines = platform.reside("permission", "explain", user, *GREET).stdout.splitlines()
    assert lines[0] == "in force"
    assert lines[1].startswith("approved (manual) by co_z")
    assert lines[1].endswith(": on call")
    listed = platform.reside("permission", "list", user).stdout
    assert "greet" in listed
    assert "on call" in listed
    platform.reside("permission", "revoke", user, *GREET, "--reason", "off duty")
    assert explained(platform, user, *GREET)["inForce"] is False
    assert "off duty" in platform.reside("permission", "list", user, "--all").stdout


def test_what_a_version_requires_is_explained_and_not_revoked_by_hand(platform: Platform) -> None:
    permission = ("kubernetes-sentinel", "deployment:manage:all")
    lines = platform.reside("permission", "explain", "alpha", *permission).stdout.splitlines()
    assert lines[0] == "in force"
    assert lines[1].startswith("required by version 1 of alpha")
    refused = platform.reside("permission", "revoke", "alpha", *permission, check=False)
    assert (refused.returncode, "has no direct grant" in refused.stderr) == (1, True)


def test_bad_input_is_named(platform: Platform, user: str) -> None:
    for arguments, text in (
        ((user, "greeter", "grate"), "has no permission 'grate'"),
        ((user, "greater", "greet"), "replica greater does not exist"),
        (("nobody", *GREET), "no replica, none of your accounts"),
        ((user, *GREET, "--params", "{"), "--params is not JSON"),
        ((user,), "name a replica and a permission, or give --super-admin"),
    ):
        refused = platform.reside("permission", "grant", *arguments, check=False)
        assert (refused.returncode, text in refused.stderr) == (1, True), refused.stderr


@pytest.fixture(scope="module")
def user_manager(platform: Platform) -> Iterator[None]:
    """Build and load the user manager as docs/images.md says; its operator may manage users."""
    platform.build("replicas/user-manager/user-manager.v1", "latest")
    shown = platform.load(platform.build("replicas/user-manager", "v1")).stdout
    assert "rcb:manage:all" in shown
    (me,) = {account for name, account in platform.accounts().items() if name == DEFAULT_ACCOUNT}
    for permission in ("user:manage:all", "user:read:all"):
        platform.reside("permission", "grant", me, "user-manager", permission)
    yield
    platform.reside("replica", "delete", "user-manager", "--auto-approve")


@pytest.mark.usefixtures("user_manager")
def test_a_user_gets_a_set_of_permissions_by_name_and_loses_it(platform: Platform, user: str) -> None:
    eventually_sync(
        "a user", lambda: platform.reside("user", "add", "ada", user, check=False).returncode == 0, within=180
    )
    platform.reside("user", "define", "on-call", "greeter/greet", "alpha/replica:read:all")
    platform.reside("user", "grant", "ada", "on-call", "--reason", "this week")
    eventually_sync("the grant", lambda: explained(platform, "ada", *GREET)["inForce"])
    rows = json.loads(platform.reside("user", "permissions", "ada", "--output", "json").stdout)
    assert [(row["permission"], row["source"]) for row in rows] == [
        ("greeter/greet", "set on-call"),
        ("alpha/replica:read:all", "set on-call"),
    ]
    platform.reside("permission", "grant", user, *GREET)
    assert "ada" in platform.reside("permission", "list").stdout
    platform.reside("permission", "clear", "ada")
    platform.reside("user", "remove", "ada")
    eventually_sync("the end", lambda: not explained(platform, user, *GREET)["inForce"])
    assert json.loads(platform.reside("user", "list", "--output", "json").stdout) == []


def test_a_lost_super_admin_is_replaced_by_whoever_can_write_the_secret(platform: Platform) -> None:
    other = platform.as_other_operator("heir")
    refused = other.reside("cluster", "claim-super-admin-access", "--account", "heir", check=False)
    assert (refused.returncode, "--recover" in refused.stderr) == (1, True)
    said = other.reside("cluster", "claim-super-admin-access", "--account", "heir", "--recover").stdout
    assert "account heir is super admin" in said
    eventually_sync("the permissions", lambda: other.reside("replica", "list", check=False).returncode == 0)
    listed = eventually_sync(
        "the list of permissions", lambda: other.reside("permission", "list", check=False), lambda r: r.returncode == 0
    )
    assert "claimed super admin access" in listed.stdout
