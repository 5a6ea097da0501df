"""Groups: members with roles, and the read keys that make a role more than a word (docs/jazz-protocol.md, section 5).

Whoever may read gets the read key sealed to the own account; whoever is removed stops getting new ones, because the key
is changed first.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from reside.jazz.errors import InvalidContent
from reside.jazz.groups.invites import Invite, InviteRole, create_invite
from reside.jazz.groups.membership import give_role
from reside.jazz.groups.rotation import prepare_rotation
from reside.jazz.groups.writer import GroupWriter
from reside.jazz.ids import EVERYONE, AccountId, AgentId, CoId, Everyone, Json, Role, is_agent_id
from reside.jazz.rules.group_state import ADMINS, GroupState, is_member_key
from reside.jazz.values.value import Value
from reside.jazz.wire.crypto import ReadKey

if TYPE_CHECKING:  # a group makes values, and a value names its group: the one circle of types
    from reside.jazz.values.cofeed import CoFeed
    from reside.jazz.values.colist import CoList
    from reside.jazz.values.comap import CoMap
    from reside.jazz.values.stream import FileStream
    from reside.jazz.values.text import CoPlainText

_MAPPINGS = ("extend", "reader", "writer", "manager", "admin")


class Group(Value):
    """A group: who may read and write the values that it owns."""

    kind: ClassVar[str] = "group"
    _repaired: bool = False

    def _refresh(self) -> int:
        """Bring the roles up to date; the number it gives grows with every change, also in a parent group."""
        _ = self._state  # judges what arrived since
        return super()._refresh()

    @property
    def name(self) -> str | None:
        """The name given at its creation; it never changes, and everybody can read it."""
        return None if self._core.header is None else self._core.header.name

    @property
    def my_role(self) -> str | None:
        """This node's account's effective role; None for none."""
        return self._state.role_of(self._host.account_id)

    def role_of(self, member: str, at: int | None = None) -> str | None:
        """Return the effective role of an account, an agent or `everyone`: direct, through parent groups, or everyone's.

        Args:
            member: account id, agent id or `everyone`.
            at: time in ms since the epoch; None for now.
        """
        return self._state.role_of(member, at)

    def members(self) -> dict[str, str]:
        """Return the direct members and their roles; `everyone` is one of them if it has a role, and so are open invites."""
        state = self._state
        roles = {key: state.get(key) for key in state.entries if is_member_key(key) or key == EVERYONE}
        return {member: role for member, role in roles.items() if role != "revoked"}

    def parents(self) -> dict[CoId, str]:
        """Return the groups whose members are members here too, with the role they get (`extend`: the one they have there)."""
        state = self._state
        return {CoId(parent): state.parents[parent][-1][1] for parent in state.parent_ids()}

    async def add_member(self, member: AccountId | AgentId | Everyone, role: Role) -> None:
        """Give an account, an agent or everyone a role; it can read what was written before.

        Args:
            member: account id, agent id or `everyone`; everyone can be reader, writer or writeOnly.
            role: the new role. Does nothing if it is the present one.

        Raises:
            NotPermitted: this account may not give this role.
            ValueNotFound: there is no such account.
        """
        if member == EVERYONE:
            await self._add_everyone(role)
            return
        if not is_agent_id(member):
            await self._host.load_account(member)
        if self._state.get(member) == role:
            return
        await give_role(self, self._writer, member, role)

    async def remove_member(self, member: AccountId | AgentId | Everyone) -> None:
        """Take away a role. The read key is changed first, so that what is written from now on is closed to it.

        What was written before stays readable to whoever had the key. An open invite is withdrawn by its agent id.

        Raises:
            NotPermitted: this account may not remove that member.
        """
        if self._state.get(member) in (None, "revoked"):
            return
        self._writer.check_role(member, "revoked")
        rotates = self._writer.acting_role(self._host.account_id) in ADMINS
        rotation = await prepare_rotation(self) if rotates else None
        if member == EVERYONE:
            # First: whoever sees half of it must not take everyone for a reader of the new key.
            self._writer.set(member, "revoked")
        if rotation is not None:
            rotation.run(member)
        if member != EVERYONE:
            self._writer.set(member, "revoked")

    async def create_invite(self, role: InviteRole, *, value: Value | None = None, hint: str | None = None) -> Invite:
        """Make an invite: whoever has its secret can give itself a role here.

        Args:
            role: the role to be had.
            value: what the invite leads to, a value of this group; None for the group itself.
            hint: goes into the invite's link, for whatever opens it.

        Raises:
            NotPermitted: this account may not invite to this role.
        """
        return await create_invite(self, role, value_id=self.id if value is None else value.id, hint=hint)

    async def extend(self, parent: "Group", role: str = "extend") -> None:
        """Make the members of another group members of this one.

        Args:
            parent: the other group.
            role: `extend`: everybody keeps the role from there; or one fixed role for all.

        Raises:
            NotPermitted: this account is not an admin here, or the parent extends this group.
        """
        if parent._state.get("groupSealer") is None:
            await parent._writer.load_members()
        self._extend(parent, role)

    def create_child(self, role: str = "extend") -> "Group":
        """Return a new group that extends this one.

        Args:
            role: as in `extend`.
        """
        child: Group = self._host.create_group()
        child._extend(self, role)
        return child

    async def revoke_extension(self, parent: "Group") -> None:
        """End that the members of another group are members here, and changes the read key.

        Raises:
            NotPermitted: this account is neither admin nor manager here.
        """
        if self._writer.acting_role(self._host.account_id) not in ADMINS:
            raise self._writer.refusal("end the extension of", "admin or manager")
        if parent.id in self._state.parent_ids():
            rotation = await prepare_rotation(self)
            self._writer.set(f"parent_{parent.id}", "revoked")
            rotation.run()

    def create_map(self, init: Mapping[str, Json] | None = None) -> "CoMap":
        """Return a new map owned by this group.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoMap = self._host.creator.map(self, init or {})
        return value

    def create_list(self, items: Iterable[Json] = (), *, restrict_deletion: bool = False) -> "CoList":
        """Return a new list owned by this group.

        Args:
            items: its first content.
            restrict_deletion: whether only admins and managers may remove items; this never changes.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoList = self._host.creator.list(self, items, restrict_deletion=restrict_deletion)
        return value

    def create_feed(self) -> "CoFeed":
        """Return a new feed owned by this group.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoFeed = self._host.creator.feed(self)
        return value

    def create_text(self, text: str = "") -> "CoPlainText":
        """Return a new text owned by this group.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoPlainText = self._host.creator.text(self, text)
        return value

    def create_file(
        self, data: bytes, *, mime_type: str = "application/octet-stream", name: str | None = None
    ) -> "FileStream":
        """Return a new file of these bytes, owned by this group.

        For more than a few megabytes, `open_file` and `FileStream.push_all` don't hold up the event loop.

        Args:
            data: its content.
            mime_type: for example `image/png`.
            name: the file's name.

        Raises:
            NotPermitted: this account may not write here.
        """
        file = self.open_file(mime_type, name=name, size=len(data))
        file.push(data)
        file.end()
        return file

    def open_file(
        self, mime_type: str = "application/octet-stream", *, name: str | None = None, size: int | None = None
    ) -> "FileStream":
        """Return a new file to be written piece by piece, with `push` or `push_all`; others can read it as it grows.

        Args:
            mime_type: for example `image/png`.
            name: the file's name.
            size: in bytes, if it is known.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: FileStream = self._host.creator.file(self, mime_type, name=name, size=size)
        return value

    @cached_property
    def _writer(self) -> GroupWriter:
        """Writes to this group as the node's account."""
        return GroupWriter(self._host, self._core)

    def _initialise(self) -> None:
        """Write the first transactions of a fresh group: admin, read key, its sealer."""
        me, key = self._host.account_id, ReadKey.generate()
        self._writer.set(me, "admin")
        self._writer.reveal(key, me)
        self._writer.set_read_key(key)

    def _make_own_write_key(self) -> None:
        """Make the key that this account writes with where everyone may write, but not read what others wrote."""
        self._writer.new_write_key(self._host.account_id)

    def _has_read_key(self) -> bool:
        """Return whether this account can read what is written in the group now."""
        key_id = self._state.get("readKey")
        return isinstance(key_id, str) and self._writer.secret(key_id) is not None

    def _children(self) -> "list[Group]":
        """Return the loaded groups that extend this one."""
        store = self._host.store
        states = ((co_id, store.group_state(co_id)) for co_id in store.core(self.id).dependants)
        return [
            self._host.object_of(store.core(co_id), Group)
            for co_id, state in states
            if isinstance(state, GroupState) and self.id in state.parent_ids()
        ]

    @property
    def _state(self) -> GroupState:
        """The validated state."""
        state = self._host.store.group_state(self.id)
        if not isinstance(state, GroupState):
            raise InvalidContent(f"{self.id} is {state}")
        return state

    def _extend(self, parent: "Group", role: str) -> None:
        if role not in _MAPPINGS:
            raise InvalidContent(f"a parent's members can be {', '.join(_MAPPINGS)}, not {role}")
        if self._state.role_of(self._host.account_id) != "admin":
            raise self._writer.refusal("extend", "admin")
        if parent._state.extends(self.id):
            raise self._writer.refusal("close a circle of groups with", f"a parent that does not extend {self.id}")
        keys = [self._writer.read_key(), *self._writer.write_keys()]
        self._writer.set(f"parent_{parent.id}", role)
        for key in keys:
            if not self._writer.reveal_to_parent(key, parent._state):
                # A parent without a sealer, as groups made long ago: its readers get a key of ours, as in JavaScript.
                parent._writer.new_write_key(self._host.account_id)
                self._writer.reveal_to_parent(key, parent._state)

    async def _add_everyone(self, role: str) -> None:
        if role not in ("reader", "writer", "writeOnly"):
            raise InvalidContent(f"everyone can be reader, writer or writeOnly, not {role}")
        previous = self._state.get(EVERYONE)
        if previous == role:
            return
        closes = role == "writeOnly" and previous in ("reader", "writer")
        rotation = await prepare_rotation(self) if closes else None
        key = self._writer.read_key()
        self._writer.set_role(EVERYONE, role)
        if role != "writeOnly":
            self._writer.set(f"{key.key_id}_for_{EVERYONE}", key.secret)
        elif rotation is not None:
            rotation.run(EVERYONE)
