"""Permissions that a replica waits for: required by its current version or asked for by its program, not in force."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from reside.cli.notices import Notice
from reside.cli.permissions import direct_grants
from reside.jazz import JazzError
from reside.model.alpha_contract import EXPLAIN_PERMISSION
from reside.model.errors import ResideError
from reside.replica.background import in_background

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from reside.cli.replicas import Row
    from reside.cli.session import Session

LOOK_S: Final = 5.0
"""Seconds after which, and between which, a load looks for missing permissions."""
UP: Final = frozenset({"running", "completed"})
_MOST: Final = 64
"""How many permissions are looked at; each is a call of Alpha."""


async def missing_grants(session: Session, row: Row, names: Mapping[int, str]) -> list[str]:
    """Return a sentence about each permission that a replica waits for.

    Args:
        session: session with the cluster.
        row: the replica.
        names: names of replicas by id.

    Raises:
        NotAllowed: the account may not ask about permissions of others.
    """
    wanted = [
        (number, requirement["contract"], permission["permission"], permission["instanceId"])
        for requirement in row["requires"]
        for number in requirement["replicas"]
        for permission in requirement["permissions"]
    ][:_MOST]
    found = await asyncio.gather(*(_explained(session, row, each) for each in wanted))
    lines = [
        _sentence(permission, instance, names.get(number, str(number)), explained)
        for (number, _, permission, instance), explained in zip(wanted, found, strict=True)
        if not explained["inForce"]
    ]
    asked = [grant for _, grant in await direct_grants(session, row["account"]) if grant.status == "pending"]
    lines += [
        f"{_named(grant.permission, grant.instance_id)} of {names.get(grant.replica, grant.replica)} is not granted: "
        f"{row['name']} has asked for it, and nobody has decided"
        for grant in asked
    ]
    return lines


@asynccontextmanager
async def missing_grants_shown(
    session: Session, names: Mapping[int, str], row: Callable[[], Row | None]
) -> AsyncIterator[None]:
    """Show the permissions that a version waits for, while the block follows it; nothing if this account may not ask.

    Args:
        session: session with the cluster.
        names: names of replicas by id.
        row: returns the replica as it was seen last; None before.
    """
    notice = Notice(quiet_s=0)

    async def look() -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            seen = row()
            if seen is not None and seen["status"] not in UP:
                with suppress(ResideError, JazzError):  # it only helps: the load says itself why it fails
                    for line in await missing_grants(session, seen, names):
                        notice.waits(line)

    async with in_background(grants=look):
        yield


async def _explained(session: Session, row: Row, wanted: tuple[int, str, str, str | None]) -> Mapping[str, object]:
    number, contract, permission, instance = wanted
    body = {"account": row["account"], "replica": number, "contract": contract}
    answer: Mapping[str, object] = await session.call(
        EXPLAIN_PERMISSION, body | {"permission": permission, "instanceId": instance}
    )
    return answer


def _sentence(permission: str, instance: str | None, replica: str, explained: Mapping[str, object]) -> str:
    what = f"{_named(permission, instance)} of {replica} is not granted"
    expected = explained["expected"]
    if isinstance(expected, dict) and expected.get("granted"):
        return f"{what} yet: {replica} has not carried out the grant, does it run?"
    return f"{what}: it was taken away, or has not been written yet"


def _named(permission: str, instance: str | None) -> str:
    return permission if instance is None else f"{permission}:{instance}"
