"""Rotation of a group's read key, so that removed members can't read what is written from now on.

Every remaining member gets the new key, and the old key encrypted under the new one. Write-only members get new write
keys. Loaded groups that extend this one rotate their keys, too. All accounts are loaded before the first write, and all
writes happen without interruption, so a failure leaves the group unchanged.
"""

from collections.abc import Sequence
from typing import Protocol

from reside.jazz.groups.writer import GroupWriter
from reside.jazz.ids import EVERYONE, CoId
from reside.jazz.rules.group_state import ADMINS, READERS
from reside.jazz.wire.crypto import ReadKey, encrypt_key


class KeyedGroup(Protocol):
    """The part of `Group` that a rotation needs."""

    @property
    def id(self) -> CoId:
        """The group's id."""

    @property
    def _writer(self) -> GroupWriter:
        """The writer of the group for the node's account."""

    def _children(self) -> Sequence["KeyedGroup"]:
        """Return the loaded groups that extend this one."""

    def _has_read_key(self) -> bool:
        """Return whether this account has the current read key."""


class Rotation:
    """A prepared rotation of a group and of the loaded groups that extend it."""

    def __init__(self, group: KeyedGroup, children: "list[Rotation]") -> None:
        self._group = group
        self._children = children

    def run(self, removed: str | None = None) -> None:
        """Rotate the keys for all members except `removed` (account id, agent id or `everyone`)."""
        writer = self._group._writer
        if removed == EVERYONE or writer.state.get(EVERYONE) not in READERS:
            _change_key(writer, removed)
            for rotation in self._children:
                rotation.run()


async def prepare_rotation(group: KeyedGroup) -> Rotation:
    """Load the accounts that a rotation of a group needs."""
    return await _prepare(group, {group.id})


async def _prepare(group: KeyedGroup, seen: set[str]) -> Rotation:
    await group._writer.load_members()
    children = []
    for child in group._children():
        acts = child._writer.acting_role(child._writer.member) in ADMINS
        if child.id in seen or not acts or not child._has_read_key():
            continue
        seen.add(child.id)
        children.append(await _prepare(child, seen))
    return Rotation(group, children)


def _change_key(writer: GroupWriter, removed: str | None) -> None:
    old, new = writer.read_key(), ReadKey.generate()
    for member in writer.key_holders(removed):
        writer.reveal_if_possible(new, member)
    for member in writer.write_only_members(removed):
        _change_write_key(writer, member, removed)
    writer.set(f"{old.key_id}_for_{new.key_id}", encrypt_key(old, new))
    writer.set_read_key(new)
    writer.reveal_to_parents(new)


def _change_write_key(writer: GroupWriter, member: str, removed: str | None) -> None:
    key = ReadKey.generate()
    writer.reveal_if_possible(key, member)
    writer.set(f"writeKeyFor_{member}", key.key_id)
    for reader in writer.key_holders(removed):
        writer.reveal_if_possible(key, reader)
    writer.reveal_to_parents(key)
