"""The base class of values that belong to a group, such as maps, lists and feeds."""

from collections.abc import Sequence
from typing import Final, Self

from reside.jazz.errors import InvalidContent, NotPermitted, ValueDeleted
from reside.jazz.groups.group import Group
from reside.jazz.ids import Json, SessionId, author_of
from reside.jazz.memory.covalue import Core
from reside.jazz.values.branches import load_or_make, merge
from reside.jazz.values.branching import origin_meta
from reside.jazz.values.content import Content, View
from reside.jazz.values.host import Host
from reside.jazz.values.value import Value
from reside.jazz.wire.session import Transaction

_NO_ROLE: Final = "its author has no role in the group, so it was neither verified nor kept"
_FIRST: Final[dict[str, Json]] = {"fww": "init"}


class OwnedValue(Value):
    """A value that belongs to a group (or an account), whose roles define who may read and write it."""

    def __init__(self, host: Host, core: Core, view: View) -> None:
        super().__init__(host, core)
        is_branch = core.header is not None and core.header.source is not None
        self._content = Content(host.store, core, view, self._source_content if is_branch else None)

    @property
    def has_owner(self) -> bool:
        """Whether a group owns the value. A value without owner can't be written here."""
        return self._core.header is not None and self._core.header.owner is not None

    @property
    def group(self) -> Group:
        """The owning group; an `Account` if an account owns the value.

        Raises:
            InvalidContent: the value has no owner; see `has_owner`.
        """
        owner_id = None if self._core.header is None else self._core.header.owner
        if owner_id is None:
            raise InvalidContent(f"{self.id} has no owner: it can be read but not written; check `has_owner` first")
        return self._host.object_of(self._host.store.core(owner_id), Group)

    @property
    def is_initialized(self) -> bool:
        """Whether an account that may write here has written: anyone can upload the header of a unique value."""
        return self._content.is_initialized

    @property
    def created_at(self) -> int | None:
        """When the value was created, by the clock of its author, in ms since the epoch.

        The header has the time. That of a unique value has none; there it is the time of the first change that counts,
        None if there is none.
        """
        header = self._core.header
        created = None if header is None else header.created_at
        first = self._content.span().first
        return created if created is not None or first is None else first.at

    @property
    def created_by(self) -> str | None:
        """The account or agent that made the first change that counts; None if there is none."""
        first = self._content.span().first
        return None if first is None else author(first)

    @property
    def last_edited_at(self) -> int | None:
        """When the last change that counts was made, by the clock of its author, in ms; else `created_at`."""
        last = self._content.span().last
        return self.created_at if last is None else last.at

    @property
    def last_edited_by(self) -> str | None:
        """The account or agent that made the last change that counts; None if there is none."""
        last = self._content.span().last
        return None if last is None else author(last)

    @property
    def transaction_count(self) -> int:
        """The number of transactions in the value's log. To drop history, replace the value and delete this one."""
        return len(self._core.transactions)

    def _refresh(self) -> int:
        """Update the content; return a number that grows with every change of the valid content."""
        self._content.refresh(read=False)
        return self._core.revision

    def refusals(self) -> list[tuple[SessionId, int, str | None]]:
        """Return session and index of each transaction of the log, and why it does not count; None if it does.

        A session that violates the protocol is ignored from its first malformed batch on: it has one entry for that.
        """
        core = self._core
        found = [(item.session, item.index, refusal) for item, refusal in self._content.refusals()]
        found += [(SessionId(session), core.count(session), item.why) for session, item in core.rejected.items()]
        skipped = {} if core.skipped is None else core.skipped.counts()
        for session, count in skipped.items():
            found += [(SessionId(session), index, _NO_ROLE) for index in range(core.count(session), count)]
        return found

    @property
    def branch_name(self) -> str | None:
        """The name of a branch; None if the value is not a branch."""
        return None if self._core.header is None else self._core.header.branch_name

    @property
    def source(self) -> Self | None:
        """The value that this is a branch of; None if it is not a branch."""
        header = self._core.header
        source = None if header is None or header.source is None else self._host.find(header.source)
        return source if isinstance(source, type(self)) else None

    async def branch(self, name: str, *, owner: Group | None = None, timeout: float = 30.0) -> Self:  # noqa: ASYNC109 - as Node.load
        """Return the branch of this name; make it if it does not exist.

        A branch shows the content that this value has when the branch is made, and what is written to the branch. What
        is written to this value later is not visible in it. Values that it refers to are not branched.

        Args:
            name: the name; branches of one name and different owners are different.
            owner: the group that owns the branch; None for the owner of this value.
            timeout: how long to wait for an existing branch, in seconds.

        Raises:
            NotPermitted: this account may not make it: it may not read this value, or not write to `owner`.
            InvalidArgument: the name is empty, or this value is a file or has no owner.
            JazzTimeout: an existing branch did not arrive in time.
        """
        return await load_or_make(self, name, owner, timeout)

    def merge(self) -> None:
        """Write what was written to this branch, and was not merged before, to its source.

        Each change keeps its time: it does not win over what was written to the source after it. The branch remains,
        and can be written and merged again.

        Raises:
            NotPermitted: this account may not write to the source.
            InvalidArgument: this value is not a branch.
        """
        merge(self)

    def _source_content(self) -> Content | None:
        source = self.source
        if source is None:
            return None
        self._hold("source", source)
        return source._content

    def _write_copy(self, item: Transaction, last: Transaction | None) -> None:
        """Write a copy of a branch's transaction.

        Args:
            item: the transaction.
            last: the one that was copied before it; None for the first one.
        """
        latest = max(self._content.latest, item.at + 1)  # an age of zero would mean that of the copy before
        if item.is_private:
            self._host.write_private(
                self._core, item.changes or [], latest=latest, meta=lambda made_at: origin_meta(item, last, made_at)
            )
        else:
            self._host.writer.plain(
                self._core, lambda made_at: origin_meta(item, last, made_at), latest=latest, changes=item.changes or []
            )

    def _write_first(self, changes: Sequence[Json]) -> None:
        """Write the first content of a unique value. Of several writers, the earliest wins.

        The header has no time of creation, so a transaction is written even without content; everyone can read it.
        """
        if changes:
            self._write(changes, _FIRST)
        else:
            self._host.writer.plain(self._core, _FIRST, latest=0)

    @property
    def deleted(self) -> bool:
        """Whether an admin of the group deleted the value. It is then empty and can't be written."""
        return self._core.deleted

    def destroy(self) -> None:
        """Delete the value permanently for everyone. Concurrent writes of others are lost as well.

        Servers and readers drop its content, but other copies may exist. A unique value can't be created again.
        Deleting a deleted value does nothing. `Node.flush` waits until the server acknowledged the deletion.

        Raises:
            NotPermitted: this account is not an admin of the group.
        """
        if self._core.deleted:
            return
        if self.group.my_role != "admin":
            raise self._refuse("delete", "admin")
        self._content.refresh()
        self._host.writer.delete(self._core, latest=self._content.latest)

    def release(self) -> None:
        """Let the node evict this value once it is unused and the servers have it, although this node has written it.

        A node with a `WritePolicy` otherwise keeps what it has written, so that a server that lost it gets it back.
        Release only what the program writes again if a server has lost it (`Node.until_reconnected`). Release it again
        after each load, before it is written: its further transactions are in a new session then.
        """
        self._host.writer.release(self._core)

    def _write(self, changes: Sequence[Json], meta: dict[str, Json] | None = None) -> None:
        self._content.refresh()
        if self._core.deleted:
            raise ValueDeleted(self.id)
        if self._host.writer.needs_write_key(self._core):
            self.group._make_own_write_key()
        self._host.write_private(self._core, changes, latest=self._content.latest, meta=meta)

    def _refuse(self, act: str, needs: str) -> NotPermitted:
        group = self.group
        return NotPermitted(self.id, group=group.id, role=group.my_role, act=act, needs=needs)


def author(transaction: Transaction) -> str:
    """Return the account or agent that made a transaction."""
    return author_of(transaction.session)
