"""Writes: new values and transactions of this node, applied locally at once and passed to the sync in order.

Writes of one event-loop turn to one value share a message and a signature. Other nodes receive all writes in the order
in which they were made: values are sent in the order of their first write, and before a value is written again after
another one, everything before is sent. While an acknowledgement is outstanding, the turns of a few milliseconds form
one batch. So a stream of writes needs few signatures and messages, and a writer that waits for answers is not delayed.
Signing and sending happens in slices, so writes to many values at once block the event loop only for the writes
themselves. With a local store there are neither batches nor slices: each turn's writes are signed and saved at its end.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reside.jazz.errors import InvalidContent, InvalidState, NotPermitted
from reside.jazz.ids import EVERYONE, CoId, Json, SessionId, author_of
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.operations.fence import Checks, check_fences
from reside.jazz.rules.deletion import deletion_meta
from reside.jazz.rules.group_state import WRITERS, GroupState
from reside.jazz.rules.keys import current_key_id, find_secret
from reside.jazz.sync import Exchange
from reside.jazz.wire.crypto import Agent, encrypt_text, transaction_material
from reside.jazz.wire.encoding import compact_json, parse_json
from reside.jazz.wire.header import Header
from reside.jazz.wire.random_ids import new_delete_session, new_session_tail
from reside.jazz.wire.session import MAX_TIME, Transaction

Meta: TypeAlias = Mapping[str, Json] | Callable[[int], Mapping[str, Json]]
"""The meta of a transaction, or a function that returns it for the time of the transaction (ms since the epoch)."""
_MAX_UNSENT_CHARACTERS: Final = 102_400
"""A message exceeds this size by at most one transaction; servers refuse frames of 100 MB."""
_BATCH_S: Final = 0.004
"""How long after the last message writes are batched, while an acknowledgement is outstanding."""
_SLICE_S: Final = 0.002
"""How long signing and sending may block the event loop at a time."""
_MAX_PERMITS: Final = 256
MAX_LEAD_MS: Final = 2_000
"""How far ahead of this node's clock another writer may be so that writes here are still dated after its writes."""


@dataclass(frozen=True, slots=True)
class _Permit:
    """What this account needs to write to the values of a group; valid for one revision of the group.

    Attributes:
        group: the group's object in memory.
        revision: the group's revision.
        key_id: id of the key to encrypt with.
        secret: the key's secret.
        since: the time in ms from which the account may write.
    """

    group: Core
    revision: int
    key_id: str
    secret: str = field(repr=False)
    since: int


class Writer:
    """Writes as one account.

    Args:
        store: the values.
        exchange: sends what is written.
        clock: returns ms since the epoch.
        check_open: raises if the node is closed.
        on_due: called when something waits for the next `send_due`.
    """

    def __init__(
        self,
        store: Store,
        exchange: Exchange,
        clock: Callable[[], int],
        check_open: Callable[[], None],
        on_due: Callable[[], None],
    ) -> None:
        self._store = store
        self._exchange = exchange
        self._clock = clock
        self._check_open = check_open
        self._on_due = on_due
        tail = new_session_tail()
        self.session = SessionId(store.account_id + tail)
        self.agent_session = SessionId(store.agent.agent_id + tail)
        exchange.own_sessions |= {self.session, self.agent_session}
        self._open: dict[CoId, Core] = {}
        self._last: Core | None = None
        self._permits: dict[CoId, _Permit] = {}
        self._unsent = 0
        self._sent_at = 0.0
        self._batching: asyncio.TimerHandle | None = None
        self._invite_agents: dict[SessionId, Agent] = {}

    def session_for(self, core: Core) -> SessionId:
        """Return this node's session for a value; an account writes to its own value as its agent."""
        if str(core.co_id) == self._store.account_id:
            return self.agent_session
        return core.session or self.session

    def release(self, core: Core) -> None:
        """Let a value be evicted although this node has written it; see `OwnedValue.release`.

        What was evicted is written in a new session when it is loaded again. A server that lost a part of the earlier
        session would otherwise get other transactions with the same indices, and readers would refuse one of the two.
        """
        if core.released:
            return
        core.released = True
        if core.co_id not in self._exchange.unacknowledged:  # else it was not evicted before
            core.session = self.new_session(core)

    def invite_session(self, agent: Agent) -> SessionId:
        """Return a new session of an invite's agent."""
        session = SessionId(agent.agent_id + new_session_tail())
        self._invite_agents[session] = agent
        self._exchange.own_sessions.add(session)
        return session

    def new_session(self, core: Core) -> SessionId:
        """Return a new session of this node for a value."""
        session = SessionId(author_of(self.session_for(core)) + new_session_tail())
        self._exchange.own_sessions.add(session)
        return session

    def create(self, header: Header) -> Core:
        """Create a value.

        Raises:
            NotPermitted: the account may not write to values of this owner.
        """
        self._check_open()
        checks = check_fences()
        if header.owner is not None:
            self.owner_state(header.co_id, header.owner)
        core = self._store.core(header.co_id)
        self._store.set_header(core, header)
        self._store.changed(core)
        if self._store.guard is not None:
            self._store.guard.created(core)
        self._exchange.created(core)
        self._begin(core, checks)
        return core

    def trusting(
        self, core: Core, key: str, value: Json, *, latest: int, since: int = 0, session: SessionId | None = None
    ) -> None:
        """Set one key of a group or an account, readable by everyone.

        Args:
            core: the group.
            key: the key to set.
            value: the new value.
            latest: time of the last valid transaction of the group by an admin or manager.
            since: time from which this account has its role.
            session: the session to write in; None for this account's.
        """
        payload = compact_json([{"op": "set", "key": key, "value": value}])
        session = session or self.session_for(core)
        made_at = max(self._made_at(core, session, latest), since)
        self._append(core, self._transaction(core, session, made_at, payload))

    def private(self, core: Core, changes: Sequence[Json], *, latest: int, meta: Meta | None = None) -> None:
        """Write an encrypted transaction to a value that a group owns.

        Args:
            core: the value.
            changes: changes in the format of the value's type.
            latest: time of the last valid transaction of the value.
            meta: the transaction's meta, or a function that returns it for the transaction's time; None for none.

        Raises:
            NotPermitted: the account's role does not allow it, or it has no key.
            InvalidArgument: the changes are not JSON.
        """
        owner_id = None if core.header is None else core.header.owner
        if owner_id is None:
            raise InvalidContent(f"{core.co_id} has no owner: it can be read but not written")
        permit = self._permit(core.co_id, owner_id)
        session, secret = self.session_for(core), permit.secret
        # A clock ahead of this one may have dated the role; earlier transactions would be invalid.
        made_at = max(self._made_at(core, session, latest), permit.since)
        material = transaction_material(core.co_id, session, core.count(session))
        plain = compact_json(changes)
        cipher_meta = None if meta is None else encrypt_text(_meta_text(meta, made_at), secret, material)
        transaction = self._transaction(
            core, session, made_at, encrypt_text(plain, secret, material), key_used=permit.key_id, meta=cipher_meta
        )
        if meta is None:
            # Parse the text instead of keeping the caller's objects: readers here must see what other nodes see.
            transaction.changes = parse_json(plain)
        self._append(core, transaction)

    def plain(
        self,
        core: Core,
        meta: Meta,
        *,
        latest: int,
        session: SessionId | None = None,
        changes: Sequence[Json] = (),
    ) -> None:
        """Write a transaction that everyone can read, with a meta and usually without changes.

        Args:
            core: a value that a group owns.
            meta: the transaction's meta, or a function that returns it for the transaction's time.
            latest: time of the last valid transaction of the value.
            session: the session to write in; None for this node's.
            changes: changes in the format of the value's type.
        """
        session = session or self.session_for(core)
        owner = None if core.header is None else self._store.owner_of(core.header)
        since = 0 if owner is None else owner.role_since(self._store.account_id)
        made_at = max(self._made_at(core, session, latest), since)
        self._append(
            core, self._transaction(core, session, made_at, compact_json(list(changes)), meta=_meta_text(meta, made_at))
        )

    def delete(self, core: Core, *, latest: int) -> None:
        """Mark a value as deleted, in a session of its own. The caller checks whether this account may delete it.

        Args:
            core: the value.
            latest: time of the last valid transaction of the value.
        """
        session = new_delete_session(self._store.account_id)
        self._exchange.own_sessions.add(session)
        self.plain(core, deletion_meta(core.co_id), latest=latest, session=session)

    def needs_write_key(self, core: Core) -> bool:
        """Return whether this account must first create a write key, because `everyone` is `writeOnly` in the group."""
        owner_id = None if core.header is None else core.header.owner
        state = None if owner_id is None else self._store.group_state(owner_id)
        if not isinstance(state, GroupState) or state.get(EVERYONE) != "writeOnly":
            return False
        me = self._store.account_id
        return state.role_of(me) == "writeOnly" and current_key_id(state, me) is None

    def owner_state(self, co_id: str, owner_id: str) -> GroupState:
        """Return the state of an owner, after checking that this account may write to its values.

        Raises:
            NotPermitted: the account may not write to them.
            InvalidState: the owner is not loaded, or not a group.
        """
        state = self._store.group_state(owner_id)
        if not isinstance(state, GroupState):
            raise InvalidState(f"the owner {owner_id} of {co_id} is {state}; await node.load_group(…) first")
        if state.role_of(self._store.account_id) not in WRITERS:
            raise self._refusal(co_id, state, "writer")
        return state

    def _permit(self, co_id: str, owner_id: CoId) -> _Permit:
        """Return what is needed to write to a value of this owner.

        Raises:
            NotPermitted: the account may not write to it.
        """
        self._store.group_state(owner_id)  # updates the revision
        group = self._store.core(owner_id)
        permit = self._permits.get(owner_id)
        if permit is not None and permit.group is group and permit.revision == group.revision:
            return permit
        state = self.owner_state(co_id, owner_id)
        key_id = current_key_id(state, self._store.account_id)
        secret = None if key_id is None else find_secret(self._store, owner_id, key_id)
        if key_id is None or secret is None:
            raise self._refusal(co_id, state, "a read key that was revealed to it")
        if len(self._permits) >= _MAX_PERMITS:
            self._permits.clear()
        permit = self._permits[owner_id] = _Permit(group, group.revision, key_id, secret, self._writes_since(state))
        return permit

    def _writes_since(self, state: GroupState) -> int:
        """Return the time since which this account may write; it may write now."""
        me = self._store.account_id
        return next((epoch for epoch in reversed(state.epochs()) if state.role_of(me, epoch - 1) not in WRITERS), 0)

    def send_due(self) -> None:
        """End a turn: send what was written in it, unless it is held for a batch."""
        if not self._open or self._batching is not None:
            return
        loop = asyncio.get_running_loop()
        self._sent_at = loop.time()
        while self._open and loop.time() < self._sent_at + _SLICE_S:
            self._send_first()
        if self._open:
            self._on_due()

    def stop_batching(self) -> None:
        """End the batch, so that it is sent from the end of this turn on."""
        if self._batching is not None:
            self._batching.cancel()
            self._end_batch()

    def send(self) -> None:
        """Send everything that was written, now."""
        self.stop_batching()
        while self._open:
            self._send_first()

    def _send_first(self) -> None:
        core = self._open.pop(next(iter(self._open)))
        if core is self._last:
            self._last, self._unsent = None, 0
        self._exchange.push(core)

    def _refusal(self, co_id: str, state: GroupState, needs: str) -> NotPermitted:
        role = state.role_of(self._store.account_id)
        return NotPermitted(co_id, group=state.co_id, role=role, act="write to", needs=needs)

    def _made_at(self, core: Core, session: SessionId, latest: int) -> int:
        """Return a time not before the last own transaction and, if possible, after all others' valid ones.

        So content that was read before a write does not win over it, even if its writer's clock is ahead. But what is
        dated more than `MAX_LEAD_MS` ahead is ignored: otherwise its author could delay all later writes, and with them
        removals, by any time.
        """
        log = core.sessions.get(session)
        last = log.transactions[-1] if log is not None and log.transactions else None
        own, now = 0 if last is None else last.made_at, self._clock()
        if last is not None and latest <= own and core.transactions[-1] is last:
            # Nothing has arrived since the last own write: the index in the session orders the two. So many writes at
            # once, such as those of a removal, are not dated ever further ahead.
            return min(max(now, own), MAX_TIME)
        after = latest + 1 if latest < now + MAX_LEAD_MS else 0
        return min(max(now, own + 1, after), MAX_TIME)

    def _transaction(
        self,
        core: Core,
        session: SessionId,
        made_at: int,
        payload: str,
        *,
        key_used: str | None = None,
        meta: str | None = None,
    ) -> Transaction:
        return Transaction(session, core.count(session), made_at, payload, key_used, meta, author_of(session))

    def _append(self, core: Core, transaction: Transaction) -> None:
        self._check_open()
        checks = check_fences()
        self._begin(core, checks)
        log = core.log(transaction.session)
        log.append_own(transaction)
        invite_agent = self._invite_agents.get(transaction.session)
        if invite_agent is not None:
            log.sign(invite_agent)
        core.add(transaction)
        self._store.changed(core)
        self._unsent += len(transaction.payload)
        if self._unsent > _MAX_UNSENT_CHARACTERS:
            self.send()

    def _begin(self, core: Core, checks: Checks) -> None:
        if self._last is not core:
            if core.co_id in self._open:
                self.send()
            self._last, self._unsent = core, 0
            self._open[core.co_id] = core
            if len(self._open) == 1:
                self._schedule_send()
        self._exchange.unacknowledged[core.co_id] = None
        if checks:
            self._exchange.fence(core, checks)

    def _schedule_send(self) -> None:
        loop = asyncio.get_running_loop()
        if self._exchange.unacknowledged and loop.time() < self._sent_at + _BATCH_S:
            self._batching = loop.call_at(self._sent_at + _BATCH_S, self._end_batch)
        else:
            self._on_due()

    def _end_batch(self) -> None:
        self._batching = None
        self._on_due()


def _meta_text(meta: Meta, made_at: int) -> str:
    return compact_json(dict(meta(made_at) if callable(meta) else meta))
