"""Groups: members with roles, and the read keys that enforce the roles (docs/jazz-protocol.md, section 5).

Every member that may read gets the read key, sealed to its account. The read key is rotated before a member is removed,
so a removed member gets no new key.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from reside.jazz.errors import InvalidArgument, InvalidState
from reside.jazz.groups.invites import Invite, InviteRole, create_invite
from reside.jazz.groups.membership import give_role
from reside.jazz.groups.rotation import prepare_rotation
from reside.jazz.groups.writer import GroupWriter
from reside.jazz.ids import EVERYONE, AccountId, AgentId, CoId, Everyone, Json, Role, is_agent_id
from reside.jazz.rules.group_state import ADMINS, GroupState, is_member_key
from reside.jazz.values.value import Value
from reside.jazz.wire.crypto import ReadKey

if TYPE_CHECKING:  # the only cycle of types: a group creates values, and a value refers to its group
    from reside.jazz.values.cofeed import CoFeed
    from reside.jazz.values.colist import CoList
    from reside.jazz.values.comap import CoMap
    from reside.jazz.values.stream import FileStream
    from reside.jazz.values.text import CoPlainText

_MAPPINGS = ("extend", "reader", "writer", "manager", "admin")


class Group(Value):
    """A group, which defines who may read and write the values that it owns."""

    kind: ClassVar[str] = "group"
    _repaired: bool = False

    def _refresh(self) -> int:
        """Update the roles; return a number that grows with every change of this group or a parent."""
        _ = self._state  # validates what arrived since the last call
        return super()._refresh()

    @property
    def name(self) -> str | None:
        """The name given at creation. It never changes, and everyone can read it."""
        return None if self._core.header is None else self._core.header.name

    @property
    def my_role(self) -> str | None:
        """The effective role of this node's account; None if it has none."""
        return self._state.role_of(self._host.account_id)

    def role_of(self, member: str, at: int | None = None) -> str | None:
        """Return the effective role of a member: direct, through parent groups, or through `everyone`.

        Args:
            member: account id, agent id or `everyone`.
            at: time in ms since the epoch; None for now.
        """
        return self._state.role_of(member, at)

    def members(self) -> dict[str, str]:
        """Return the direct members and their roles, including `everyone` if it has a role, and open invites."""
        state = self._state
        roles = {key: state.get(key) for key in state.entries if is_member_key(key) or key == EVERYONE}
        return {member: role for member, role in roles.items() if role != "revoked"}

    def parents(self) -> dict[CoId, str]:
        """Return the parent groups, each with the role that its members get here; `extend` keeps each one's role."""
        state = self._state
        return {CoId(parent): state.parents[parent][-1][1] for parent in state.parent_ids()}

    async def add_member(self, member: AccountId | AgentId | Everyone, role: Role) -> None:
        """Give an account, an agent or everyone a role. A role that can read includes all earlier content.

        Args:
            member: account id, agent id or `everyone`; everyone can be reader, writer or writeOnly.
            role: the new role; nothing happens if it is the current one.

        Raises:
            NotPermitted: this account may not assign this role.
            ValueNotFound: the account does not exist.
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
        """Remove a member, after a rotation of the read key, so that it can't read what is written from now on.

        A former member can still read what was written before. To revoke an open invite, remove its agent id.

        Raises:
            NotPermitted: this account may not remove that member.
        """
        if not self._writer.has_role(member):
            return
        self._writer.check_role(member, "revoked")
        rotates = self._writer.acting_role(self._host.account_id) in ADMINS
        rotation = await prepare_rotation(self) if rotates else None
        if member == EVERYONE:
            # Revoke first: a node that has received only a part must not treat everyone as a reader of the new key.
            self._writer.assign(member, "revoked")
        if rotation is not None:
            rotation.run(member)
        if member != EVERYONE:
            self._writer.assign(member, "revoked")

    async def create_invite(self, role: InviteRole, *, value: Value | None = None, hint: str | None = None) -> Invite:
        """Create an invite; any account with its secret can give itself a role in this group.

        Args:
            role: the role that the invite gives.
            value: the value of this group that the invite is for; None for the group itself.
            hint: included in the invite's link, for the application that opens it.

        Raises:
            NotPermitted: this account may not create invites for this role.
        """
        return await create_invite(self, role, value_id=self.id if value is None else value.id, hint=hint)

    async def extend(self, parent: "Group", role: str = "extend") -> None:
        """Make the members of another group members of this one.

        Args:
            parent: the other group.
            role: `extend` to keep each member's role, or one role for all of them.

        Raises:
            NotPermitted: this account is not an admin here, or the parent extends this group.
        """
        if parent._state.get("groupSealer") is None:
            await parent._writer.load_members()
        self._extend(parent, role)

    def create_child(self, role: str = "extend") -> "Group":
        """Create a group that extends this one.

        Args:
            role: as in `extend`.
        """
        child: Group = self._host.create_group()
        child._extend(self, role)
        return child

    async def revoke_extension(self, parent: "Group") -> None:
        """End the extension of a parent, so that its members are no longer members here, and rotate the read key.

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
        """Create a map owned by this group.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoMap = self._host.creator.map(self, init or {})
        return value

    def create_list(self, items: Iterable[Json] = (), *, restrict_deletion: bool = False) -> "CoList":
        """Create a list owned by this group.

        Args:
            items: the initial content.
            restrict_deletion: whether only admins and managers may remove items; this can't be changed later.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoList = self._host.creator.list(self, items, restrict_deletion=restrict_deletion)
        return value

    def create_feed(self) -> "CoFeed":
        """Create a feed owned by this group.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoFeed = self._host.creator.feed(self)
        return value

    def create_text(self, text: str = "") -> "CoPlainText":
        """Create a text owned by this group.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: CoPlainText = self._host.creator.text(self, text)
        return value

    def create_file(
        self, data: bytes, *, mime_type: str = "application/octet-stream", name: str | None = None
    ) -> "FileStream":
        """Create a file with this content, owned by this group.

        For more than a few megabytes use `open_file` and `FileStream.push_all`, which do not block the event loop.

        Args:
            data: the content.
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
        """Create a file and write it later, with `push` or `push_all`; others can read it while it grows.

        Args:
            mime_type: for example `image/png`.
            name: the file's name.
            size: the size in bytes, if known.

        Raises:
            NotPermitted: this account may not write here.
        """
        value: FileStream = self._host.creator.file(self, mime_type, name=name, size=size)
        return value

    @cached_property
    def _writer(self) -> GroupWriter:
        """The writer of this group for the node's account."""
        return GroupWriter(self._host, self._core)

    def _initialise(self) -> None:
        """Write the first transactions of a new group: admin, read key, group sealer."""
        me, key = self._host.account_id, ReadKey.generate()
        self._writer.set(me, "admin")
        self._writer.reveal(key, me)
        self._writer.set_read_key(key)

    def _make_own_write_key(self) -> None:
        """Create a write key for this account, for a group in which `everyone` is `writeOnly`."""
        self._writer.new_write_key(self._host.account_id)

    def _has_read_key(self) -> bool:
        """Return whether this account has the current read key."""
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
            raise InvalidState(f"the group {self.id} is {state}; await node.load_group(…) again")
        return state

    def _extend(self, parent: "Group", role: str) -> None:
        if role not in _MAPPINGS:
            raise InvalidArgument(f"a parent's members can be {', '.join(_MAPPINGS)}, not {role}")
        if self._state.role_of(self._host.account_id) != "admin":
            raise self._writer.refusal("extend", "admin")
        if parent._state.extends(self.id):
            raise self._writer.refusal("create a cycle of groups with", f"a parent that does not extend {self.id}")
        keys = [self._writer.read_key(), *self._writer.write_keys()]
        self._writer.set(f"parent_{parent.id}", role)
        for key in keys:
            if not self._writer.reveal_to_parent(key, parent._state):
                # An old parent without a sealer: give its readers a write key of this account, as in JavaScript.
                parent._writer.new_write_key(self._host.account_id)
                self._writer.reveal_to_parent(key, parent._state)

    async def _add_everyone(self, role: str) -> None:
        if role not in ("reader", "writer", "writeOnly"):
            raise InvalidArgument(f"everyone can be reader, writer or writeOnly, not {role}")
        previous = self._state.get(EVERYONE)
        if previous == role:
            return
        revokes_reading = role == "writeOnly" and previous in ("reader", "writer")
        rotation = await prepare_rotation(self) if revokes_reading else None
        key = self._writer.read_key()
        self._writer.set_role(EVERYONE, role)
        if role != "writeOnly":
            self._writer.set(f"{key.key_id}_for_{EVERYONE}", key.secret)
        elif rotation is not None:
            rotation.run(EVERYONE)
