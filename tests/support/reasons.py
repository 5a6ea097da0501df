"""The reasons for which a replica does not run: how each is provoked, and what the command says about it.

Each row is provoked for real by the module that `where` names; a unit test checks that the table is complete, and that
`reside explain` knows each code. The modules compare what `reside replica load` and `reside replica describe` print.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from reside.cli.explanations import explain

Where = Literal["alpha", "sentinel", "e2e"]


@dataclass(frozen=True)
class Reason:
    """One reason.

    Attributes:
        name: what people call it.
        code: its code in `reside explain`.
        where: the tests that provoke it: `integration/alpha`, `integration/sentinel` or `e2e`.
        load: texts that `reside replica load` prints, besides the code's name or cure.
        describe: texts that `reside replica describe` prints; none if no replica has the reason.
        is_explained: whether the load itself says what to do.
    """

    name: str
    code: str
    where: Where
    load: tuple[str, ...]
    describe: tuple[str, ...] = ()
    is_explained: bool = True

    @property
    def cure(self) -> str:
        """What to do about it."""
        (found,) = [each for each in explain(self.code) if each.pattern is not None]
        return " ".join(found.cure.split())

    def check_load(self, said: str) -> None:
        """Check what a load has printed, on one line."""
        missing = [text for text in self.load if text not in said]
        assert not missing, f"{self.name}: {missing} not in {said}"
        if self.is_explained:
            assert self.cure in said or f"`reside explain {self.code}` says more" in said, (
                f"{self.name}: no cure: {said}"
            )

    def check_describe(self, said: str) -> None:
        """Check what a description has printed, on one line."""
        missing = [text for text in (*self.describe, f"{self.code}: {self.cure}") if text not in said]
        assert not missing, f"{self.name}: {missing} not in {said}"


REASONS: Final = (
    Reason("no such image", "no-such-image", "alpha", ("has no such image",), ("is invalid", "has no such image")),
    Reason(
        "registry away",
        "registry-unavailable",
        "alpha",
        ("validating, waits: image 'registry.example.org/faraway:v1': registry", "can't be reached"),
        ("is validated: image 'registry.example.org/faraway:v1': registry", "can't be reached"),
    ),
    Reason("runAsNonRoot", "runAsNonRoot", "alpha", ("runs as root",), ("is invalid", "runs as root")),
    Reason(
        "missing requirement",
        "waiting-for-requirement",
        "alpha",
        ("no replica implements",),
        ("is invalid", "no replica implements"),
    ),
    Reason(
        "waiting for approval",
        "waiting-for-approval",
        "alpha",
        ("requires-approval", "Approve?"),
        ("waits for approval",),
        is_explained=False,  # it asks
    ),
    Reason(
        "expired request",
        "expired-request",
        "alpha",
        ("was rejected: expired: nobody approved it",),
        ("is rejected: expired: nobody approved it",),
    ),
    Reason(
        "missing grant",
        "waiting-for-grant",
        "alpha",
        ("greet of greeter is not granted yet: greeter has not carried out the grant",),
        ("greet of greeter is not granted yet",),
    ),
    Reason("lease lost", "lease-lost", "alpha", ("waiting: alpha can't handle", "is lost: ")),
    Reason(
        "Jazz away", "jazz-unavailable", "alpha", ("waiting: Jazz can't be reached",), ("Jazz can't be reached at",)
    ),
    Reason("refused policy", "policy", "sentinel", ("breaks team-label: ",), ("is invalid", "breaks team-label: ")),
    Reason(
        "conflict", "foreign-object", "sentinel", ("Secret/taken exists and is managed by",), ("Secret/taken exists",)
    ),
    Reason("quota", "quota", "sentinel", ("exceeded quota: none",), ("exceeded quota: none",)),
    Reason("image pull", "ImagePullBackOff", "e2e", ("ImagePullBackOff: ",), ("ImagePullBackOff: ",)),
    Reason("crash loop", "CrashLoopBackOff", "e2e", ("exit code 3",), ("CrashLoopBackOff: exit code 3",)),
    Reason("failing probe", "Unhealthy", "e2e", ("Startup probe failed",), ("Unhealthy: Startup probe failed",)),
    Reason("unschedulable", "Unschedulable", "e2e", ("nodes are available",), ("Unschedulable: ",)),
)


def reasons_of(where: Where) -> dict[str, Reason]:
    """Return the reasons that these tests provoke, by name."""
    return {reason.name: reason for reason in REASONS if reason.where == where}
