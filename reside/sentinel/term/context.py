"""The parts of a term, and how the leading Sentinel reads and checks desired stacks and candidates."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reside.common.turns import Turns
from reside.jazz import JazzError
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import InvalidInput, NotAllowed, NotReady
from reside.model.permissions import PermissionRef
from reside.model.stacks import OBJECTS, object_key
from reside.policy import rules
from reside.sentinel.contract.desired_stacks import Rights, check_rights, effective_edit, read_stack
from reside.sentinel.engine import check_adoption
from reside.sentinel.errors import ForeignObjects, PolicyViolated
from reside.sentinel.objects.identity import is_being_deleted, is_kept

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.jazz import CoMap, Edit
    from reside.locks import Held
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.policy.settings import Policy
    from reside.replica import Context
    from reside.sentinel.contract.data import SentinelData
    from reside.sentinel.engine import StackEngine
    from reside.sentinel.guard.guard import Guard

_LOAD_S: Final = 5.0
"""Deadline in seconds for a stack's map to arrive from Jazz; then it is tried again with back-off."""


@dataclass(frozen=True)
class LaneCounts:
    """How many operations the engine runs in parallel.

    Attributes:
        stacks: stacks that are applied or removed.
        previews: previews, beside them.
    """

    stacks: int
    previews: int


@dataclass(frozen=True)
class TermContext:
    """The parts of one term.

    Attributes:
        replica: context of the Sentinel's replica.
        data: the Sentinel's data in Jazz.
        guard: the running guard.
        engine: the engine of this term.
        lease: the lease that makes this process the leader.
        policy: the rules of the cluster, with their levels.
        lanes: how many operations run in parallel.
        stack_locks: locks by stack; see `stack_lock`.
        turns: of what reads stacks, because all of them may become readable at once.
    """

    replica: Context
    data: SentinelData
    guard: Guard
    engine: StackEngine
    lease: Held
    policy: Policy = field(default_factory=rules.default_policy)
    lanes: LaneCounts = LaneCounts(stacks=4, previews=2)
    stack_locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    turns: Turns = field(default_factory=Turns)

    def stack_lock(self, stack: str) -> asyncio.Lock:
        """Return the lock of a stack, under which the engine works, so that its apply and its preview don't overlap."""
        return self.stack_locks.setdefault(stack, asyncio.Lock())

    def rights(self) -> Rights:
        """Return who may declare what at this moment."""

        def granted(account: str, name: str) -> bool:
            return self.replica.rcb.is_granted(PermissionRef(account, SENTINEL_CONTRACT, name))

        return Rights(granted, self.guard.store.holder, self.replica.node.now_ms())

    def owner(self, stack: str) -> str | None:
        """Return the account that owns a stack; None if the stack was never accepted."""
        stored = self.guard.store.stacks.get(stack)
        return stored.owner if stored else self.data.owner(stack)

    def declarer(self, stack: str) -> str:
        """Return whose turn it is when a stack is handled: its owner, or else the account that wrote its entry last."""
        if (owner := self.owner(stack)) is not None:
            return owner
        edit = self.data.desired.edit(stack)
        return edit.by if edit else ""

    def entry(self, stack: str) -> Edit | None:
        """Return the effective edit of the stack's entry in `desired`."""
        return effective_edit(self.data.desired.history(stack), self.owner(stack), self.rights())

    async def read(self, name: str | None, entry: Edit) -> tuple[CoMap, DesiredStack]:
        """Return the map that an entry points to, and its stack; check form and authors, but not permissions.

        Raises:
            InvalidInput: it is not a stack.
            NotAllowed: its objects were written by another account.
            NotReady: it can't be read now.
        """
        what, target = f"stack {name or 'of a candidate'}", entry.value
        if not isinstance(target, str):
            raise InvalidInput(f"{what}: its entry is not the id of a map")
        try:
            source = await self.replica.node.load_map(target, timeout=_LOAD_S)
        except JazzError as error:
            raise NotReady(f"{what}: {target} can't be read: {error}") from error
        await self.turns.take()
        return source, read_stack(name, entry, source.as_dict(), source.edit(OBJECTS))

    def check(self, stack: DesiredStack, found: Iterable[rules.Violation]) -> None:
        """Check that the stack's owner may declare it and that it does not violate the policy.

        Args:
            stack: the stack.
            found: the violations that `review` has found.

        Raises:
            NotAllowed: a permission is missing.
            Conflict: an object belongs to another stack.
            InvalidInput: the stack is empty in place of one with objects.
            PolicyViolated: the stack violates rules.
        """
        check_rights(stack, self.rights())
        self.check_filled(stack)
        if broken := tuple(str(each) for each in found if each.level == "mandatory"):
            raise PolicyViolated(broken)

    def check_held(self, stack: DesiredStack) -> None:
        """Check again, right before the apply is stored, that the stack may have its objects.

        Another stack may have begun to apply an object of the same name since `check`.

        Raises:
            NotAllowed, Conflict: as `check`.
        """
        check_rights(stack, self.rights())
        self.check_owner(stack)

    def check_owner(self, stack: DesiredStack) -> None:
        """Check that the stack does not belong to another account: it may have been reassigned since it was read.

        Raises:
            NotAllowed: it does.
        """
        owner = self.owner(stack.name)
        if owner not in (None, stack.owner):
            raise NotAllowed(f"stack {stack.name} belongs to {owner}: use another name")

    def review(self, stack: DesiredStack) -> tuple[rules.Violation, ...]:
        """Return all violations of the policy by a stack, mandatory and advisory ones."""
        trusted = self.is_alpha(stack.owner)
        context = rules.Context(self.guard.api.namespace, stack=stack.name, trusted=trusted)
        return tuple(rules.review(stack.objects, context, self.policy))

    def is_alpha(self, account: str) -> bool:
        """Return whether an account is Alpha's: it administers our control block, which others can only write."""
        return self.replica.rcb.root.group.role_of(account) == "admin"

    def check_filled(self, stack: DesiredStack) -> None:
        """Check that a stack without objects does not take the place of one with objects.

        Raises:
            InvalidInput: it does. What is lost by accident (a list that could not be read) looks the same.
        """
        if stack.objects:
            return
        stored = self.guard.store.stacks.get(stack.name)
        held = set(stored.held()) if stored else set()
        cache = self.guard.cache
        for key in cache.of_stack(stack.name):
            if (seen := cache.get(key)) is not None and not (is_kept(seen) or is_being_deleted(seen)):
                held.add(key)
        if held:
            raise InvalidInput(
                f"stack {stack.name} is declared without objects, but has {len(held)}, such as {min(held)}: delete its "
                "entry in `desired` to remove them"
            )

    async def check_adoption(
        self, stack: DesiredStack, objects: tuple[K8sObject, ...], *, trusting: bool = False
    ) -> dict[str, dict[str, str]]:
        """Check that no object of the stack exists already as an object that is not ours, or of another owner's stack.

        An object that the stack holds is looked up in the cache, where the watches show the loss of our label, too. So
        a change of an applied stack needs no request for it.

        The cache has objects with our label only. So a new object that it does not have may exist as another program's:
        either that is asked, or the caller trusts the precondition and asks here if the create is refused.

        Args:
            stack: the stack.
            objects: its objects, with the values of secret references.
            trusting: whether a new object does not exist if the cache does not have it.

        Returns:
            the preconditions of the objects that the stack does not hold yet (`StackSpec.expected`).

        Raises:
            ForeignObjects: such objects exist.
        """
        stored = self.guard.store.stacks.get(stack.name)
        held = stored.held() if stored else frozenset[str]()

        async def live(obj: K8sObject) -> K8sObject | None:
            key = object_key(obj)
            known = self.guard.cache.get(key)
            if key not in held:
                if trusting and known is None and self.guard.cache.is_listed(key):
                    return None
                known = None  # it may have lost our label since the watch has shown it
            return await self.guard.api.get(key) if known is None else known

        def is_own(name: str) -> bool:
            if name == stack.name or self.owner(name) == stack.owner:
                return True
            entry = self.entry(name)  # of a stack that was removed after the object moved from it
            return entry is not None and entry.by == stack.owner

        found = await check_adoption(objects, live, is_own)
        if found.refused:
            raise ForeignObjects("; ".join(str(refusal) for refusal in found.refused))
        return {key: identity for key, identity in found.expected.items() if key not in held}
