"""What all loaded values have in common: identity, owner, and being watched."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from .content import Content, View
from .covalue import Core
from .errors import NotPermitted
from .ids import CoId, Json, SessionId, author_of
from .session import Transaction
from .watch import Watch

if TYPE_CHECKING:
    from .group import Group
    from .node import Node


class Value:
    """A value of a node; there is one object of this class for each id and node.

    Reads are synchronous and give validated content only. Use it on the event loop of its node.
    """

    kind: ClassVar[str] = "value"

    def __init__(self, node: "Node", core: Core) -> None:
        self._node = node
        self._core = core

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core.co_id}>"

    @property
    def id(self) -> CoId:
        """The value's id."""
        return self._core.co_id

    def refresh(self) -> int:
        """Brings the content up to date; the number it gives grows with every change of the valid content."""
        raise NotImplementedError

    def watch(self) -> Watch[Self]:
        """Yields this value at once, and again after each change of its valid content.

        A slow consumer sees the latest state, never a backlog. Used as an async context manager, it is unsubscribed at
        the end of the block; without one, when the iterator is dropped::

            async with value.watch() as changes:
                async for value in changes:
                    ...
        """
        return Watch(self, self._node.watches)

    def on_change(self, callback: Callable[[Self], None]) -> Callable[[], None]:
        """Calls back on the event loop after each change of the valid content; call what it gives to unsubscribe."""
        return self._node.watches.add_callback(self, callback)


class OwnedValue(Value):
    """A value that belongs to a group (or an account), whose roles say who may read and write it."""

    def __init__(self, node: "Node", core: Core, view: View) -> None:
        super().__init__(node, core)
        self._content = Content(node.store, core, view)

    @property
    def group(self) -> "Group":
        """The owning group; an `Account` if an account owns the value."""
        return self._node.owner_of(self._core)

    def refresh(self) -> int:
        """Brings the content up to date; the number it gives grows with every change of the valid content."""
        self._content.refresh()
        return self._core.revision

    def refusals(self) -> list[tuple[SessionId, int, str | None]]:
        """For each transaction of the log (session, index) the reason why it does not count; None if it does."""
        return [(item.session, item.index, refusal) for item, refusal in self._content.refusals()]

    def _write(self, changes: Sequence[Json], meta: dict[str, Json] | None = None) -> None:
        self._content.refresh()
        if self._node.writer.needs_write_key(self._core):
            self.group.make_own_write_key()
        self._node.write_private(self._core, changes, latest=self._content.latest, meta=meta)

    def _refuse(self, act: str, needs: str) -> NotPermitted:
        group = self.group
        return NotPermitted(self.id, group=group.id, role=group.my_role, act=act, needs=needs)


def author(transaction: Transaction) -> str:
    """The account or agent that made a transaction."""
    return author_of(transaction.session)
