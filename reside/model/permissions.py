"""Permissions between replicas: their keys, and how expected grants change with a version's requirements.

The replica that owns the data grants a permission: Alpha writes `expected`, the replica writes `current`.

Invariant: a permission is in force only while `expected` and `current` both grant it, with equal params, and its key
names the grantee (docs/model.md, section 4). So a revocation counts once it is written, whatever the handler does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model.identities import resolved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@dataclass(frozen=True)
class Grant:
    """Whether a permission is granted, or expected to be, and with which parameters."""

    granted: bool
    params: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz."""
        return {"granted": self.granted, "params": self.params}

    @staticmethod
    def parse(data: Any) -> Grant | None:
        """Return the grant in a JSON document; None if it is missing or malformed, which grants nothing."""
        if not isinstance(data, dict) or not isinstance(data.get("granted"), bool):
            return None
        params = data.get("params")
        return Grant(data["granted"], params if isinstance(params, dict) else {})


@dataclass(frozen=True)
class PermissionRef:
    """A permission of one grantee."""

    account: str
    contract: str
    name: str
    instance_id: str | None = None

    def __post_init__(self) -> None:
        """Resolve the name of the contract."""
        if (identity := resolved(self.contract)) != self.contract:
            object.__setattr__(self, "contract", identity)

    @property
    def key(self) -> str:
        """Key in the granting replica's control block: `<account>:<contract identity>:<permission>[:<instance id>]`."""
        parts = [self.account, self.contract, self.name]
        return ":".join(parts if self.instance_id is None else [*parts, self.instance_id])


@dataclass(frozen=True)
class ControlBlockPermission:
    """An entry of a control block: the grant that Alpha expects, and the current one."""

    ref: PermissionRef
    expected: Grant
    current: Grant | None = None

    @property
    def in_force(self) -> bool:
        """Whether the grantee has the permission."""
        return self.expected.granted and self.current == self.expected

    @property
    def settled(self) -> bool:
        """Whether the replica has made the current grant equal to the expected one."""
        return self.current == self.expected or (
            not self.expected.granted and not (self.current and self.current.granted)
        )


def plan_expected(
    expected: Mapping[PermissionRef, Grant],
    earlier: Collection[PermissionRef],
    entries: Iterable[ControlBlockPermission],
) -> dict[PermissionRef, Grant]:
    """Return what to write as `expected` into a control block after the requirements of an account have changed.

    Grants are added and updated; those that are no longer expected are set to not granted. Permissions outside of
    `earlier` are not changed: they belong to another account, or an administrator granted them manually.

    Args:
        expected: the grants that the account's current version requires.
        earlier: the permissions that any version of the account has required.
        entries: the control block's entries.
    """
    known = {p.ref: p.expected for p in entries}
    changed = {ref: grant for ref, grant in expected.items() if known.get(ref) != grant}
    withdrawn = {ref for ref in earlier if ref not in expected and ref in known and known[ref].granted}
    return changed | dict.fromkeys(withdrawn, Grant(granted=False))
