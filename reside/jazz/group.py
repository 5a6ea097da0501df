"""Groups: members with roles, and the read keys that make a role more than a word (jazz-protocol.md §5).

A group's changes are trusting transactions of exactly one `set` each. Whoever may read gets the read key sealed to the
own account; whoever is removed stops getting new ones, because the key is changed first.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from .crypto import ReadKey, encrypt_key, group_sealer_value, seal, seal_key_for_group, transaction_material
from .errors import InvalidContent, NotPermitted
from .ids import EVERYONE, AccountId, CoId, Everyone, Json, Role
from .keys import current_key_id, find_secret
from .permissions import ADMINS, KEY_HOLDERS, READERS, GroupState, is_member_key
from .value import Value

if TYPE_CHECKING:  # a group makes values, and a value names its group: the one circle of types
    from .cofeed import CoFeed
    from .colist import CoList
    from .comap import CoMap

_WRITE_ONLY = ("writeOnly", "writeOnlyInvite")
_MAPPINGS = ("extend", "reader", "writer", "manager", "admin")


class Group(Value):
    """A group: who may read and write the values that it owns."""

    kind: ClassVar[str] = "group"

    def refresh(self) -> int:
        """Brings the roles up to date; the number it gives grows with every change, also in a parent group."""
        self._state()
        self._core.stale = False
        return self._core.revision

    @property
    def name(self) -> str | None:
        """The name given at its creation; it never changes, and everybody can read it."""
        return None if self._core.header is None else self._core.header.name

    @property
    def my_role(self) -> str | None:
        """This node's account's effective role; None for none."""
        return self._state().role_of(self._node.account_id)

    def role_of(self, member: str, at: int | None = None) -> str | None:
        """The effective role of an account or `everyone`: direct, through parent groups, or everyone's.

        Args:
            member: Account id or `everyone`.
            at: Time in ms since the epoch; None for now.
        """
        return self._state().role_of(member, at)

    def members(self) -> dict[str, str]:
        """The direct members and their roles; `everyone` is one of them if it has a role."""
        state = self._state()
        roles = {key: state.get(key) for key in state.entries if is_member_key(key) or key == EVERYONE}
        return {member: role for member, role in roles.items() if role != "revoked"}

    def parents(self) -> dict[CoId, str]:
        """The groups whose members are members here too, with the role they get (`extend`: the one they have there)."""
        state = self._state()
        return {CoId(parent): state.parents[parent][-1][1] for parent in state.parent_ids()}

    async def add_member(self, member: AccountId | Everyone, role: Role) -> None:
        """Gives an account, or everyone, a role; it can read what was written before.

        Args:
            member: Account id or `everyone`; everyone can be reader, writer or writeOnly.
            role: The new role. Does nothing if it is the present one.

        Raises:
            NotPermitted: This account may not give this role.
            ValueNotFound: There is no such account.
        """
        if member == EVERYONE:
            await self._add_everyone(role)
            return
        account = await self._node.load_account(member)
        if self._state().get(member) == role:
            return
        self._check_may_change(member, role)
        if role in _WRITE_ONLY:
            await self._add_write_only(member, role)
            return
        self._set(member, role)
        for key in [self._read_key(), *self._write_keys()]:
            self._reveal(key, account.id)

    async def remove_member(self, member: AccountId | Everyone) -> None:
        """Takes away a role. The read key is changed first, so that what is written from now on is closed to it.

        What was written before stays readable to whoever had the key.

        Raises:
            NotPermitted: This account may not remove that member.
        """
        if self._state().get(member) in (None, "revoked"):
            return
        if member != self._node.account_id:
            self._check_may_change(member, "revoked")
        if self._state().role_of(self._node.account_id) in ADMINS:
            await self._rotate(member)
        self._set(member, "revoked")

    async def extend(self, parent: "Group", role: str = "extend") -> None:
        """Makes the members of another group members of this one.

        Args:
            parent: The other group.
            role: `extend`: everybody keeps the role from there; or one fixed role for all.

        Raises:
            NotPermitted: This account is not an admin here, or the parent extends this group.
        """
        self._extend(parent, role)

    def create_child(self, role: str = "extend") -> "Group":
        """A new group that extends this one.

        Args:
            role: As in `extend`.
        """
        child: Group = self._node.create_group()
        child._extend(self, role)
        return child

    def _extend(self, parent: "Group", role: str) -> None:
        state = self._state()
        if role not in _MAPPINGS:
            raise InvalidContent(f"a parent's members can be {', '.join(_MAPPINGS)}, not {role}")
        if state.role_of(self._node.account_id) != "admin":
            raise self._refuse("extend", "admin")
        if parent.state.extends(self.id):
            raise self._refuse("close a circle of groups with", f"a parent that does not extend {self.id}")
        self._set(f"parent_{parent.id}", role)
        for key in [self._read_key(), *self._write_keys()]:
            self._reveal_to_parent(key, parent.state)

    async def revoke_extension(self, parent: "Group") -> None:
        """Ends that the members of another group are members here, and changes the read key.

        Raises:
            NotPermitted: This account is neither admin nor manager here.
        """
        if self.my_role not in ADMINS:
            raise self._refuse("end the extension of", "admin or manager")
        self._set(f"parent_{parent.id}", "revoked")
        await self._rotate(None)

    def create_map(self, init: Mapping[str, Json] | None = None) -> "CoMap":
        """A new map owned by this group.

        Raises:
            NotPermitted: This account may not write here.
        """
        made: CoMap = self._node.create_map(self, init or {})
        return made

    def create_list(self, items: Iterable[Json] = ()) -> "CoList":
        """A new list owned by this group.

        Raises:
            NotPermitted: This account may not write here.
        """
        made: CoList = self._node.create_list(self, items)
        return made

    def create_feed(self) -> "CoFeed":
        """A new feed owned by this group.

        Raises:
            NotPermitted: This account may not write here.
        """
        made: CoFeed = self._node.create_feed(self)
        return made

    @property
    def state(self) -> GroupState:
        """The validated state, for this package."""
        return self._state()

    def initialise(self) -> None:
        """Writes the first transactions of a fresh group: admin, read key, its sealer."""
        me = self._node.account_id
        key = ReadKey.generate()
        self._set(me, "admin")
        self._reveal(key, me)
        self._set("readKey", key.key_id)
        self._set("groupSealer", group_sealer_value(key))

    def _state(self) -> GroupState:
        state = self._node.store.group_state(self.id)
        if not isinstance(state, GroupState):
            raise InvalidContent(f"{self.id} is {state}")
        return state

    def _set(self, key: str, value: Json) -> None:
        # After every change of a role here or in a parent, so that ours stands when the transaction is judged.
        times = self._state().epochs()
        self._node.write_trusting(self._core, key, value, latest=times[-1] if times else 0)

    def _refuse(self, act: str, needs: str) -> NotPermitted:
        return NotPermitted(self.id, group=self.id, role=self.my_role, act=act, needs=needs)

    def _check_may_change(self, member: str, role: str) -> None:
        state = self._state()
        mine, theirs = state.role_of(self._node.account_id), state.get(member)
        if mine not in ADMINS:
            raise self._refuse("change members of", "admin or manager")
        if mine == "admin" and theirs == "admin" and role != "admin" and member != self._node.account_id:
            raise self._refuse("demote an admin of", "that admin itself")
        if mine == "manager" and (theirs == "admin" or role in ("admin", "adminInvite", "managerInvite")):
            raise self._refuse("change or make admins of", "admin")

    async def _add_everyone(self, role: str) -> None:
        if role not in ("reader", "writer", "writeOnly"):
            raise InvalidContent(f"everyone can be reader, writer or writeOnly, not {role}")
        previous = self._state().get(EVERYONE)
        if previous == role:
            return
        self._check_may_change(EVERYONE, role)
        key = self._read_key()
        self._set(EVERYONE, role)
        if role != "writeOnly":
            self._set(f"{key.key_id}_for_{EVERYONE}", key.secret)
        elif previous in ("reader", "writer"):
            await self._rotate(EVERYONE)

    async def _add_write_only(self, member: AccountId, role: Role) -> None:
        await self._load_agents()
        if self._state().get(member) in READERS:
            await self._rotate(member)
        self._set(member, role)
        self._new_write_key(member)

    def make_own_write_key(self) -> None:
        """Makes the key that this account writes with where everyone may write, but not read what others wrote."""
        self._new_write_key(self._node.account_id)

    def _new_write_key(self, member: str) -> None:
        """A key of its own for a member who may write but not read what others write."""
        key = ReadKey.generate()
        self._set(f"writeKeyFor_{member}", key.key_id)
        self._reveal(key, member)
        for other in self._key_holders(None):
            self._reveal(key, other)
        for parent in self._parent_states():
            self._reveal_to_parent(key, parent)

    async def _rotate(self, removed: str | None) -> None:
        """Changes the read key for all but one member, and the keys of loaded groups that extend this one."""
        await self._load_agents()
        state = self._state()
        if removed != EVERYONE and state.get(EVERYONE) in READERS:
            return  # the key is public anyway
        old, new = self._read_key(), ReadKey.generate()
        holders = self._key_holders(removed)
        for member in holders:
            self._reveal(new, member)
        for member in [key for key in state.member_keys() if state.get(key) in _WRITE_ONLY and key != removed]:
            self._new_write_key(member)
        self._set(f"{old.key_id}_for_{new.key_id}", encrypt_key(old, new))
        self._set("readKey", new.key_id)
        self._set("groupSealer", group_sealer_value(new))
        for parent in self._parent_states():
            self._reveal_to_parent(new, parent)
        for child in self._children():
            if child.state.get(self._node.account_id) in ADMINS and child.has_read_key():
                await child._rotate(None)  # noqa: SLF001 - the same class

    def _children(self) -> list["Group"]:
        """The loaded groups that extend this one."""
        store = self._node.store
        states = ((co_id, store.group_state(co_id)) for co_id in store.core(self.id).dependants)
        return [
            self._node.object_of(store.core(co_id), Group)
            for co_id, state in states
            if isinstance(state, GroupState) and self.id in state.parent_ids()
        ]

    def has_read_key(self) -> bool:
        """Whether this account can read what is written in the group now."""
        key_id = self._state().get("readKey")
        return isinstance(key_id, str) and find_secret(self._node.store, self.id, key_id) is not None

    async def _load_agents(self) -> None:
        """Loads the accounts of all key holders: sealing needs their public keys."""
        state = self._state()
        members = [key for key in state.member_keys() if state.get(key) in KEY_HOLDERS or state.get(key) in _WRITE_ONLY]
        absent = [member for member in members if self._node.store.agent_of(member) is None]
        await asyncio.gather(*(self._node.load_account(member) for member in absent))

    def _key_holders(self, removed: str | None) -> list[str]:
        state = self._state()
        return [key for key in state.member_keys() if key != removed and state.get(key) in KEY_HOLDERS]

    def _read_key(self) -> ReadKey:
        key_id = current_key_id(self._node.store, self._state())
        secret = None if key_id is None else find_secret(self._node.store, self.id, key_id)
        if key_id is None or secret is None:
            raise self._refuse("use the read key of", "a role that can read")
        return ReadKey(key_id, secret)

    def _write_keys(self) -> list[ReadKey]:
        state = self._state()
        ids = [state.get(key) for key in state.entries if key.startswith("writeKeyFor_")]
        secrets = [
            (key_id, find_secret(self._node.store, self.id, key_id)) for key_id in ids if isinstance(key_id, str)
        ]
        return [ReadKey(key_id, secret) for key_id, secret in secrets if secret is not None]

    def _reveal(self, key: ReadKey, member: str) -> None:
        agent_id = self._node.store.agent_of(member)
        if agent_id is None:
            raise InvalidContent(f"the account {member} of group {self.id} is not loaded")
        sealer_id = agent_id.partition("/")[0]
        material = self._next_material()
        self._set(f"{key.key_id}_for_{member}", seal(key.secret, self._node.store.agent, sealer_id, material))

    def _parent_states(self) -> list[GroupState]:
        found = (self._node.store.group_state(parent) for parent in self._state().parent_ids())
        return [parent for parent in found if isinstance(parent, GroupState)]

    def _reveal_to_parent(self, key: ReadKey, parent: GroupState) -> None:
        """Gives a key to a parent's members: under its read key where we have that, else sealed to the group."""
        store = self._node.store
        parent_key_id = current_key_id(store, parent)
        secret = None if parent_key_id is None else find_secret(store, parent.co_id, parent_key_id)
        if parent_key_id is not None and secret is not None and parent.role_of(store.account_id) is not None:
            under = ReadKey(parent_key_id, secret)
            self._set(f"{key.key_id}_for_{parent_key_id}", encrypt_key(key, under))
            return
        sealer_id = str(parent.get("groupSealer") or "").rpartition("@")[2]
        if not sealer_id:
            raise self._refuse(f"reveal a key to the parent {parent.co_id} of", "a role in the parent, or its sealer")
        sealed = seal_key_for_group(key.secret, sealer_id, self._next_material())
        self._set(f"{key.key_id}_sealedFor_{sealer_id}", sealed)

    def _next_material(self) -> str:
        session = self._node.writer.session_for(self._core)
        return transaction_material(self.id, session, self._core.count(session))
