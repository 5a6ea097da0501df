"""Permissions between replicas: their keys and what a change of wishes does to a control block.

Granting is done by the replica that owns the data: Alpha writes ``expected``, that replica writes ``current``.
Invariant: a permission counts only while its ``current`` says granted and names the grantee (docs/model.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@dataclass(frozen=True)
class Grant:
    """Whether a permission is (or shall be) granted, and with which parameters."""

    granted: bool
    params: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """JSON form as stored in Jazz."""
        return {"granted": self.granted, "params": self.params}

    @staticmethod
    def parse(data: Any) -> Grant | None:
        """From its JSON form; None when absent or malformed, which grants nothing."""
        if not isinstance(data, dict) or not isinstance(data.get("granted"), bool):
            return None
        params = data.get("params")
        return Grant(data["granted"], params if isinstance(params, dict) else {})


@dataclass(frozen=True)
class PermissionRef:
    """One permission of one grantee; its ``key`` is its key in the control block of the granting replica."""

    account: str
    contract: str
    name: str
    instance_id: str | None = None

    @property
    def key(self) -> str:
        """``accountId:contractIdentity:permissionName[:instanceId]`` (docs/model.md, section 3)."""
        parts = [self.account, self.contract, self.name]
        return ":".join(parts if self.instance_id is None else [*parts, self.instance_id])


@dataclass(frozen=True)
class ControlBlockPermission:
    """A permission in a control block, with what Alpha expects and what the replica has done."""

    ref: PermissionRef
    expected: Grant
    current: Grant | None = None

    @property
    def settled(self) -> bool:
        """Whether the replica has carried out what is expected."""
        return self.current == self.expected or (
            not self.expected.granted and not (self.current and self.current.granted)
        )


def is_granted(permissions: Iterable[ControlBlockPermission], ref: PermissionRef) -> bool:
    """Whether exactly this permission is in force."""
    return any(p.ref == ref and p.current is not None and p.current.granted for p in permissions)


def sync(
    wanted: Mapping[PermissionRef, Grant], asked: Collection[PermissionRef], present: Iterable[ControlBlockPermission]
) -> dict[PermissionRef, Grant]:
    """What to write as ``expected`` so that a control block says what an account now asks for.

    Added, updated, left, or set to not granted where no longer asked for. What was never asked for is not touched: it
    is another account's, or an administrator granted it by hand.

    Args:
        wanted: what the account asks for.
        asked: what it ever asked for.
        present: the control block's permissions.
    """
    known = {p.ref: p.expected for p in present}
    wishes = {ref: grant for ref, grant in wanted.items() if known.get(ref) != grant}
    withdrawn = {ref for ref in asked if ref not in wanted and ref in known and known[ref].granted}
    return wishes | dict.fromkeys(withdrawn, Grant(granted=False))
