"""What the leading Sentinel has at hand for its term, and how it reads others' wishes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policy import rules
from reside.jazz import JazzError
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import NotReady
from reside.model.permissions import PermissionRef, is_granted
from reside.model.stacks import OBJECTS
from reside.sentinel.contract.declared import Rights, check_rights, in_force, read_stack
from reside.sentinel.engine import check_adoption
from reside.sentinel.errors import ForeignObjects, PolicyViolated

if TYPE_CHECKING:
    from reside.jazz import CoMap, Edit
    from reside.locks import Held
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.replica import Context
    from reside.sentinel.contract.data import SentinelData
    from reside.sentinel.engine import StackEngine
    from reside.sentinel.guard.guard import Guard


@dataclass(frozen=True)
class TermContext:
    """The parts of one term."""

    replica: Context
    data: SentinelData
    guard: Guard
    engine: StackEngine
    lease: Held
    serial: dict[str, asyncio.Lock] = field(default_factory=dict)

    def lane(self, stack: str) -> asyncio.Lock:
        """The lock under which the engine works on a stack: an apply and a preview of it don't overlap."""
        return self.serial.setdefault(stack, asyncio.Lock())

    def rights(self) -> Rights:
        """Who may declare what at this moment."""
        permissions = self.replica.rcb.permissions()

        def granted(account: str, name: str) -> bool:
            return is_granted(permissions, PermissionRef(account, SENTINEL_CONTRACT, name))

        return Rights(granted, self.guard.store.holder, self.replica.node.now_ms())

    def owner(self, stack: str) -> str | None:
        """The account that a stack belongs to, once it was accepted."""
        stored = self.guard.store.stacks.get(stack)
        return stored.owner if stored else None

    def entry(self, stack: str) -> Edit | None:
        """The edit of the stack's entry in ``desired`` that counts."""
        return in_force(self.data.desired.history(stack), self.owner(stack), self.rights())

    async def read(self, name: str | None, entry: Edit) -> tuple[CoMap, DesiredStack]:
        """The stack that an entry points to, with its map; form and authors are checked, rights are not.

        Raises:
            InvalidInput: it is no stack.
            NotAllowed: its objects are another account's.
            NotReady: it can't be read now.
        """
        try:
            source = await self.replica.node.load_map(str(entry.value))
        except JazzError as error:
            raise NotReady(f"stack {name or ''}: {entry.value} can't be read: {error}") from error
        return source, read_stack(name, entry, source.as_dict(), source.edit(OBJECTS))

    def check(self, stack: DesiredStack) -> None:
        """Go on only if the stack's owner may declare it and no rule is broken.

        Raises:
            NotAllowed: a permission is missing.
            PolicyViolated: rules are broken.
        """
        check_rights(stack, self.rights())
        if broken := self.violations(stack):
            raise PolicyViolated(broken)

    def violations(self, stack: DesiredStack) -> tuple[str, ...]:
        """The rules that a stack breaks, as sentences."""
        found = rules.check(stack.objects, rules.Context(self.guard.api.namespace))
        return tuple(str(violation) for violation in found)

    async def check_adoption(self, objects: tuple[K8sObject, ...]) -> None:
        """Go on only if no object of the stack is somebody else's already.

        Raises:
            ForeignObjects: some are.
        """

        async def live(manifest: K8sObject) -> K8sObject | None:
            return await self.guard.api.get(f"{manifest['kind']}/{manifest['metadata']['name']}")

        if refused := await check_adoption(objects, live):
            raise ForeignObjects("; ".join(str(refusal) for refusal in refused))
