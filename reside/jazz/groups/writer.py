"""Writes to a group: roles, and the keys that enforce them (docs/jazz-protocol.md, section 5).

A group's changes are trusting transactions of exactly one `set` each. A key's secret is sealed to each member's own
sealer. Members of a parent group get it encrypted under the parent's read key, or sealed to the parent's group sealer.
"""

import asyncio
import logging

from reside.jazz.errors import InvalidContent, InvalidState, NotPermitted
from reside.jazz.ids import CoId, Json, is_account_id
from reside.jazz.memory.covalue import Core
from reside.jazz.rules.group_state import KEY_HOLDERS, WRITE_ONLY, GroupState
from reside.jazz.rules.keys import current_key_id, find_secret
from reside.jazz.rules.permissions import refusal_of_role
from reside.jazz.rules.reader import Reader
from reside.jazz.values.host import Host
from reside.jazz.wire.crypto import (
    Agent,
    ReadKey,
    encrypt_key,
    group_sealer_value,
    seal,
    seal_key_for_group,
    transaction_material,
)
from reside.jazz.wire.session import next_time

_log = logging.getLogger(__name__)
_ROLES_WITH_READ_KEY = frozenset({"admin", "manager", "writer", "reader"})


class GroupWriter:
    """Writes to one group as one identity.

    Args:
        host: the node of the group.
        core: the group.
        invite_agent: the agent of an invite, to write as; None for the node's account.
    """

    def __init__(self, host: Host, core: Core, invite_agent: Agent | None = None) -> None:
        self._host = host
        self.core = core
        self._agent = host.store.agent if invite_agent is None else invite_agent
        self._reader = host.store.reader if invite_agent is None else Reader(invite_agent.agent_id, invite_agent)
        self._session = (
            host.writer.session_for(core) if invite_agent is None else host.writer.invite_session(invite_agent)
        )

    @property
    def id(self) -> CoId:
        """The group's id."""
        return self.core.co_id

    @property
    def member(self) -> str:
        """The identity that writes: an account id or agent id."""
        return self._reader.member

    @property
    def state(self) -> GroupState:
        """The group's validated content."""
        state = self._host.store.group_state(self.id)
        if not isinstance(state, GroupState):
            raise InvalidState(f"the group {self.id} is {state}; await node.load_group(…) again")
        return state

    def set(self, key: str, value: Json) -> None:
        """Set a key, dated after the writer's role: a change of the same millisecond may be ordered before it."""
        state = self.state
        since = next_time(state.role_since(self.member))
        self._host.write_trusting(self.core, key, value, latest=state.latest, since=since, session=self._session)

    def has_role(self, member: str) -> bool:
        """Return whether a direct member has a role now, or after the last change of it, which may be dated later."""
        roles = (self.state.get(member, self._host.now_ms()), self.state.get(member))
        return any(role not in (None, "revoked") for role in roles)

    def set_role(self, member: str, role: str) -> None:
        """Assign a role.

        Raises:
            NotPermitted: readers would refuse the assignment.
        """
        self.check_role(member, role)
        self.assign(member, role)

    def assign(self, member: str, role: str) -> None:
        """Assign a role, or `revoked`, from now on; once more if a valid assignment is dated later.

        The second assignment has a session of its own. Otherwise it would date everything that is written here later.
        """
        self.set(member, role)
        last = self.state.entries[member][-1]
        if last.value != role and self.member == self._host.account_id:  # an invite assigns once
            session = self._host.writer.new_session(self.core)
            since = next_time(last.made_at)
            self._host.write_trusting(self.core, member, role, latest=0, since=since, session=session)

    def check_role(self, member: str, role: str) -> None:
        """Refuse an assignment of a role that readers would refuse.

        Raises:
            NotPermitted: with the reason.
        """
        mine, theirs = self.acting_role(self.member), self.acting_role(member)
        refusal = refusal_of_role(self.member, mine, member, theirs, role)
        if refusal is not None:
            raise self.refusal(f"make {member} {role} in", f"another role: {refusal}")

    def acting_role(self, member: str) -> str | None:
        """Return a member's current role for changes of the group: direct or through a parent, not through everyone."""
        now = max(self._host.now_ms(), self.state.latest)
        validation = self.core.validation
        return None if validation is None else validation.validator.acting_role(member, now)

    def refusal(self, act: str, needs: str) -> NotPermitted:
        """Return the error for an action that the writer's role does not allow."""
        return NotPermitted(self.id, group=self.id, role=self.state.role_of(self.member), act=act, needs=needs)

    # Keys

    def read_key(self) -> ReadKey:
        """Return the key with which new content is encrypted.

        Raises:
            NotPermitted: the writer has no access to it.
        """
        key_id = current_key_id(self.state, self.member)
        secret = None if key_id is None else find_secret(self._host.store, self.id, key_id, self._reader)
        if key_id is None or secret is None:
            raise self.refusal("use the read key of", "a role that can read")
        return ReadKey(key_id, secret)

    def write_keys(self) -> list[ReadKey]:
        """Return the keys of write-only members, as far as the writer has them."""
        state = self.state
        ids = [state.get(key) for key in state.entries if key.startswith("writeKeyFor_")]
        found = ((key_id, self.secret(key_id)) for key_id in ids if isinstance(key_id, str))
        return [ReadKey(key_id, secret) for key_id, secret in found if secret is not None]

    def secret(self, key_id: str) -> str | None:
        """Return the secret of one of the group's keys; None if the writer can't find it."""
        return find_secret(self._host.store, self.id, key_id, self._reader)

    def new_write_key(self, member: str) -> None:
        """Create a write key for a member that may write but not read, and give it to all key holders as well."""
        key = ReadKey.generate()
        self.set(f"writeKeyFor_{member}", key.key_id)
        self.reveal(key, member)
        for other in self.key_holders():
            self.reveal_if_possible(key, other)
        self.reveal_to_parents(key)

    def set_read_key(self, key: ReadKey) -> None:
        """Make a key the read key."""
        self.set("readKey", key.key_id)
        self.set("groupSealer", group_sealer_value(key))

    # Distribution of keys

    def key_holders(self, without: str | None = None) -> list[str]:
        """Return the direct members that get read keys."""
        state = self.state
        return [key for key in state.member_keys() if key != without and state.get(key) in KEY_HOLDERS]

    def write_only_members(self, without: str | None = None) -> list[str]:
        """Return the direct members with a write key of their own."""
        state = self.state
        return [key for key in state.member_keys() if key != without and state.get(key) in WRITE_ONLY]

    async def load_members(self) -> None:
        """Load the accounts of all members with keys, for their public keys. Ignore members without a known account."""
        members = [*self.key_holders(), *self.write_only_members()]
        absent = [member for member in members if is_account_id(member) and self._host.store.agent_of(member) is None]
        await asyncio.gather(*(self._host.load_header(member) for member in absent))

    def reveal_if_possible(self, key: ReadKey, member: str) -> None:
        """Give a key to a member; if that is impossible, log a warning.

        An invite lets anyone make any id a member. A member without an account or without a usable key must not prevent
        a rotation, so it gets no key.
        """
        try:
            self.reveal(key, member)
        except (InvalidContent, InvalidState) as error:
            _log.warning("member %s of group %s gets no key: %s", member, self.id, error)

    def reveal(self, key: ReadKey, member: str) -> None:
        """Give a key to an account or an agent.

        Raises:
            InvalidState: the account is not loaded.
            InvalidContent: it has no usable key.
        """
        agent_id = self._host.store.agent_of(member)
        if agent_id is None:
            raise InvalidState(f"the account {member} of group {self.id} is not loaded; await node.load_account(…)")
        sealed = seal(key.secret, self._agent, agent_id.partition("/")[0], self._next_material())
        self.set(f"{key.key_id}_for_{member}", sealed)

    def parent_states(self) -> list[GroupState]:
        """Return the states of the loaded parent groups."""
        found = (self._host.store.group_state(parent) for parent in self.state.parent_ids())
        return [parent for parent in found if isinstance(parent, GroupState)]

    def reveal_to_parents(self, key: ReadKey) -> None:
        """Give a key to the members of all parents; log a warning for a parent with neither a read key nor a sealer."""
        for parent in self.parent_states():
            if not self.reveal_to_parent(key, parent):
                _log.warning("members of parent %s get no key of %s: no read key and no sealer", parent.co_id, self.id)

    def reveal_to_parent(self, key: ReadKey, parent: GroupState) -> bool:
        """Give a key to a parent's members: under its read key if the writer has that, else sealed to its group sealer.

        Returns:
            whether one of the two was possible.
        """
        under = self._key_of_parent(parent)
        if under is not None:
            self.set(f"{key.key_id}_for_{under.key_id}", encrypt_key(key, under))
            return True
        sealer_id = str(parent.get("groupSealer") or "").rpartition("@")[2]
        if not sealer_id:
            return False
        try:
            sealed = seal_key_for_group(key.secret, sealer_id, self._next_material())
        except InvalidContent:
            return False  # the parent's sealer is unusable: only the parent's members lose access
        self.set(f"{key.key_id}_sealedFor_{sealer_id}", sealed)
        return True

    def _key_of_parent(self, parent: GroupState) -> ReadKey | None:
        """Return a key of the parent's members: its read key, or the writer's write key if the parent has no sealer."""
        role = parent.role_of(self.member)
        if role not in _ROLES_WITH_READ_KEY and parent.get("groupSealer") is not None:
            return None
        key_id = current_key_id(parent, self.member)
        if role not in _ROLES_WITH_READ_KEY and key_id == parent.get("readKey"):
            return None
        secret = None if key_id is None else find_secret(self._host.store, parent.co_id, key_id, self._reader)
        return None if key_id is None or secret is None else ReadKey(key_id, secret)

    def _next_material(self) -> str:
        return transaction_material(self.id, self._session, self.core.count(self._session))
