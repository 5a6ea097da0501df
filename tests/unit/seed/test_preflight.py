"""Faults of a cluster before a bootstrap: missing rights, faults that last, and what to do about known errors."""

from __future__ import annotations

import pytest
from lightkube.models.authorization_v1 import ResourceRule

from reside.access.cures import with_cure
from reside.model.errors import NotReady
from reside.seed.blocked import PATIENCE_S, Blocked
from reside.seed.preflight import missing_rights

REQUIRED = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "create"]}]


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        ([], ["get, create deployments"]),
        ([ResourceRule(["*"], apiGroups=["*"], resources=["*"])], []),
        ([ResourceRule(["get"], apiGroups=["apps"], resources=["deployments"])], ["create deployments"]),
        ([ResourceRule(["get", "create"], apiGroups=[""], resources=["deployments"])], ["get, create deployments"]),
        (
            [ResourceRule(["*"], apiGroups=["apps"], resources=["*"], resourceNames=["one"])],
            ["get, create deployments"],
        ),
        (
            [
                ResourceRule(["get"], apiGroups=["apps"], resources=["*"]),
                ResourceRule(["create"], apiGroups=["apps"], resources=["deployments", "daemonsets"]),
            ],
            [],
        ),
    ],
    ids=["none", "administrator", "read only", "another group", "named objects", "two rules"],
)
def test_rights_that_are_not_granted_are_missing(granted: list[ResourceRule], missing: list[str]) -> None:
    assert missing_rights(REQUIRED, granted) == missing


def test_a_fault_ends_a_wait_only_once_it_has_lasted() -> None:
    """A quota can be used up by pods that are being replaced."""
    clock = [0.0]
    blocked = Blocked("jazz", 300, lambda: clock[0])
    blocked.check("exceeded quota: a")
    clock[0] = PATIENCE_S - 1
    blocked.check(None)
    clock[0] = PATIENCE_S
    blocked.check("exceeded quota: a")
    clock[0] = 2 * PATIENCE_S - 1
    blocked.check("exceeded quota: a")
    clock[0] = 2 * PATIENCE_S
    with pytest.raises(NotReady, match="jazz gets no pod: exceeded quota: a: raise the quota"):
        blocked.check("exceeded quota: a")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ('pods "x" is forbidden: exceeded quota: tight, requested: pods=1', "`kubectl describe resourcequota tight`"),
        ("failed quota: tight: must specify limits.cpu", "set defaults for containers by a LimitRange"),
        ('secrets is forbidden: User "ada" cannot create', "the Role `seed` in `reside cluster manifest`"),
        ("get stack secrets manager: incorrect passphrase", "PULUMI_CONFIG_PASSPHRASE"),
        ("write /x: no space left on device", "free disk space"),
        ("/x: No space left on device", "free disk space"),
    ],
)
def test_a_known_fault_is_followed_by_its_cure(text: str, cure: str) -> None:
    assert with_cure(text).startswith(f"{text}: ")
    assert cure in with_cure(text)


def test_an_unknown_fault_stays_as_it_is() -> None:
    assert with_cure("jazz does not respond") == "jazz does not respond"
