"""Give stacks to another account, at the request of an operator: a lost account's stacks, for example.

Nothing is deleted or created again: the live objects, the engine's state and the stored stack stay. Only the edits of
the new owner count from then on, and the secret values that the stack references are its, too.

Idempotent: a stack is given only if it still belongs to the account that the request names. It changes hands by one
write to the volume, under the lock of the stack, after the vault has the values for the new owner.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import structlog

from reside.model.errors import ResideError
from reside.model.sentinel_data import FAILED, FROM, STACKS, TO
from reside.sentinel.contract.desired_stacks import effective_edit
from reside.sentinel.errors import fault_text
from reside.sentinel.objects.secrets import all_references
from reside.sentinel.term.operator_requests import Result

if TYPE_CHECKING:
    from reside.jazz import Edit
    from reside.sentinel.contract.operator_requests import OperatorRequest
    from reside.sentinel.store.stacks import StoredStack
    from reside.sentinel.term.context import TermContext
    from reside.sentinel.term.reader import Reader

_log = structlog.get_logger(__name__)


class Change(NamedTuple):
    """A stack that is to change its owner.

    Attributes:
        owner: its present owner; None: there is no such stack.
        origin: the account whose stack it must be.
        target: the account that gets it.
        may_declare: whether that account may declare objects.
        entry: the edit that is effective once the stack belongs to it.
    """

    owner: str | None
    origin: str
    target: str
    may_declare: bool
    entry: Edit | None


def refusal(change: Change) -> str | None:
    """Return why a stack is not given to another account; None if nothing is against it."""
    if change.owner is None:
        return "there is no such stack"
    if change.owner not in (change.origin, change.target):
        return f"it belongs to {change.owner}"
    if not change.may_declare:
        return f"{change.target} may not declare any object: grant it `<kind>:manage:all`"
    if change.owner == change.origin and change.entry is not None and change.entry.deleted:
        return f"{change.target} has deleted it, so all its objects would be deleted: let it declare the stack before"
    return None


def outcome(change: Change, *, is_dry_run: bool) -> str:
    """Return what becomes of a stack that nothing is against, for people."""
    if change.owner == change.target:
        return "belongs to it already"
    verb = "would belong to it" if is_dry_run else "belongs to it"
    return verb if change.entry is not None else f"{verb}, and stays as it is until it declares the stack"


class Reassigner:
    """Gives stacks to other accounts during one term.

    Args:
        context: the parts of the term.
        reader: reads desired stacks, and forgets what it has read of the former owner.
    """

    def __init__(self, context: TermContext, reader: Reader) -> None:
        self._context = context
        self._reader = reader

    async def handle(self, request: OperatorRequest) -> Result:
        """Give the stacks that a request names, or all of an account, to another account; return what became of each.

        Raises:
            InvalidInput: the request is malformed.
        """
        origin, target = request.text(FROM), request.text(TO)
        names = request.stacks() or self._stacks_of(origin)
        outcomes = await asyncio.gather(
            *(self._one(name, origin, target, is_dry_run=request.is_dry_run) for name in names)
        )
        return Result({STACKS: dict(zip(names, outcomes, strict=True))})

    def _stacks_of(self, account: str) -> list[str]:
        data, stored = self._context.data, self._context.guard.store.stacks
        names = {*stored, *data.owners.keys(), *data.desired.keys()}
        return sorted(name for name in names if self._owner(name) == account)

    async def _one(self, name: str, origin: str, target: str, *, is_dry_run: bool) -> str:
        change = self._change(name, origin, target)
        refused = refusal(change)
        if refused or is_dry_run:
            return f"refused: {refused}" if refused else outcome(change, is_dry_run=True)
        try:
            async with self._context.stack_lock(name):
                await self._context.lease.check()
                change = self._change(name, origin, target)
                if refused := refusal(change):
                    return f"refused: {refused}"
                if change.owner != target:
                    _log.info("reassigning a stack", of=name, before=origin, after=target)
                await self._give(name, target)
        except ResideError as error:
            return f"{FAILED}{fault_text(error)}"
        return outcome(change, is_dry_run=False)

    async def _give(self, name: str, target: str) -> None:
        """Give a stack away; a second call completes one that ended half-way.

        Raises:
            NotReady: the volume can't be written.
        """
        guard, stored = self._context.guard, self._context.guard.store.stacks.get(name)
        if stored is not None and stored.owner != target:
            given = replace(stored, owner=target)
            self._reader.reassign(stored, given)
            await guard.vault.put_aside(self._values(stored, given))
            await guard.store.save_aside(replace(guard.store.stacks[name], owner=target))
        if self._context.data.owner(name) != target:
            self._context.data.owners.set(name, target)
        self._reader.read_again(name)

    def _values(self, before: StoredStack, after: StoredStack) -> dict[tuple[str, str], str]:
        """Return the secret values that the vault has for a stack, by its new owner and their reference."""
        vault = self._context.guard.vault
        targets = {reference.target for reference in all_references(before.objects)}
        found = {target: vault.get(before.owner, target) for target in targets}
        return {
            (after.owner, target): value
            for target, value in found.items()
            if value is not None and vault.get(after.owner, target) is None
        }

    def _change(self, name: str, origin: str, target: str) -> Change:
        rights = self._context.rights()
        entry = effective_edit(self._context.data.desired.history(name), target, rights)
        return Change(self._owner(name), origin, target, rights.may_declare(target), entry)

    def _owner(self, name: str) -> str | None:
        """Return the owner of a stack, also of one that was never accepted."""
        entry = self._context.entry(name)
        return self._context.owner(name) or (entry.by if entry is not None and not entry.deleted else None)
