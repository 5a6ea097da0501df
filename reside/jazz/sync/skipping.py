"""Sessions of authors without a role: they are counted, and neither verified nor kept.

Anyone can write sessions into any value, and the server relays them. They can count only if their author has, or once
had, a role in the owning group. For the others, a node remembers only the number of transactions, so that the server
does not send them again. If the author gets a role later, the server is asked for them.
"""

from reside.jazz.ids import author_of
from reside.jazz.memory.covalue import Batch, Core, Skipped, own
from reside.jazz.memory.store import Store
from reside.jazz.rules.group_state import WRITERS, GroupState


class Skipping:
    """Decides which batches are skipped.

    Args:
        store: the values.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def skips(self, core: Core, batch: Batch) -> bool:
        """Return whether no transaction of a batch can count, because its author has no role."""
        owner = self._owner(core)
        if owner is None or owner.knows(author_of(batch.session)):
            return False
        public = owner.public_roles()
        if public & WRITERS:
            return False
        # Readers may write readable transactions that point to a branch.
        return not public or all(item.is_private or item.meta is None for item in batch.transactions)

    def skip(self, core: Core, batch: Batch) -> bool:
        """Count a batch; return False if transactions before it are missing."""
        owner = self._owner(core)
        if core.skipped is None and owner is not None:
            core.skipped = Skipped(self._revision(core), owner.public_roles())
        counts = {} if core.skipped is None else core.skipped.authors.setdefault(author_of(batch.session), {})
        have = max(core.count(batch.session), counts.get(batch.session, 0))
        if have < batch.after:
            return False
        counts[batch.session] = max(have, batch.end)
        return True

    def release(self) -> list[Core]:
        """Return the changed values with skipped sessions that may count now; the server has to be asked for them."""
        changed, self._store.skipping = self._store.skipping, {}
        return [core for core in changed.values() if self._release(core)]

    def _release(self, core: Core) -> bool:
        skipped, owner, revision = core.skipped, self._owner(core), self._revision(core)
        if skipped is None or owner is None or revision == skipped.revision:
            return False
        public, authors = owner.public_roles(), skipped.authors
        if public <= skipped.public:
            members = (member for state in owner.lineage() for member in state.entries)
            released = [member for member in members if member in authors]
        else:
            released = list(authors)
        skipped.revision, skipped.public = revision, public
        for author in released:
            for session, count in authors.pop(author, {}).items():
                core.expected = expected = own(core.expected)
                expected[session] = max(count, expected.get(session, 0))
        return bool(released)

    def _owner(self, core: Core) -> GroupState | None:
        return None if core.header is None else self._store.owner_of(core.header)

    def _revision(self, core: Core) -> int:
        owner = None if core.header is None else core.header.owner
        return -1 if owner is None else self._store.core(owner).revision
