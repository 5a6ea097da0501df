"""`reside cluster prune`: objects that are in no stack, and that the Sentinel deletes only after a confirmation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from reside.cli import config, output, sentinel_maps
from reside.cli.grantees import read_names
from reside.cli.prompt import confirm
from reside.cli.session import open_session
from reside.jazz import AccountId
from reside.model.constants import SENTINEL_NAME
from reside.model.errors import NotReady, ResideError
from reside.model.sentinel_data import CONFIRM, CONFIRMED, CONFIRMED_UIDS, HELD, HELD_OBJECTS, HELD_REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.jazz import CoMap, Node

DELETED_S: Final = 60.0
"""Seconds to wait until the Sentinel has begun to delete what was confirmed."""


@dataclass(frozen=True)
class HeldObjects:
    """What waits for a confirmation.

    Attributes:
        uids: `Kind/name` of each object → its uid.
        reasons: why the Sentinel does not delete them by itself.
    """

    uids: dict[str, str]
    reasons: tuple[str, ...]

    @staticmethod
    def parse(data: dict[str, Any]) -> HeldObjects:
        """Return what the map `pruneHeld` contains."""
        objects, reasons = data.get(HELD_OBJECTS, []), data.get(HELD_REASONS, [])
        return HeldObjects({str(each["object"]): str(each["uid"]) for each in objects}, tuple(map(str, reasons)))

    def lines(self) -> Iterator[str]:
        """Yield what is deleted and why it waits, for people."""
        yield "these objects carry the Sentinel's label and are in no stack:"
        yield from (f"  {key}" for key in self.uids)
        yield from (f"held: {reason}" for reason in self.reasons)


def prune(
    *,
    auto_approve: Annotated[bool, typer.Option("--auto-approve", help="Delete without asking.")] = False,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """Show objects that are in no stack and that the Sentinel does not delete by itself; ask, and have them deleted."""

    async def run() -> str:
        async with open_session(config.load(), context) as session:
            names = await read_names(session)
            sentinel = AccountId(names.account(SENTINEL_NAME))
            held, confirmed = await open_maps(session.node, sentinel)
            found = HeldObjects.parse(held.as_dict())
            if not found.uids:
                return "nothing waits for a confirmation"
            for line in found.lines():
                output.line(line)
            if not (auto_approve or await confirm("Delete them?")):
                raise ResideError("nothing was confirmed, and nothing is deleted")
            await confirm_deletion(session.node, held, confirmed, found)
            return f"{len(found.uids)} objects are being deleted"

    output.line(asyncio.run(run()))


async def open_maps(node: Node, sentinel: AccountId) -> tuple[CoMap, CoMap]:
    """Return the Sentinel's maps of what is held and what is confirmed.

    Raises:
        NotAllowed: this account may not confirm.
        NotReady: the Sentinel has not published its data yet.
    """
    held, confirmed = await sentinel_maps.open_maps(node, sentinel, (HELD, CONFIRMED), CONFIRM, writes=True)
    return held, confirmed


async def confirm_deletion(node: Node, held: CoMap, confirmed: CoMap, seen: HeldObjects) -> None:
    """Confirm the deletion of the objects that were seen, and wait until the Sentinel holds none of them back.

    Raises:
        NotReady: the Sentinel did not react in time.
    """
    confirmed.set(CONFIRMED_UIDS, sorted(seen.uids.values()))
    await node.flush()
    try:
        async with asyncio.timeout(DELETED_S), held.watch() as changes:
            async for changed in changes:
                if not set(seen.uids.values()) & set(HeldObjects.parse(changed.as_dict()).uids.values()):
                    return
    except TimeoutError:
        raise NotReady(
            f"the deletion is confirmed, but not begun after {DELETED_S:.0f} s: check that the Sentinel's pod is ready"
        ) from None
