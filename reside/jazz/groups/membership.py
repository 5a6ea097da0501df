"""Giving somebody a role, with the keys that belong to it (docs/jazz-protocol.md, section 5)."""

from reside.jazz.groups.rotation import KeyedGroup, prepare_rotation
from reside.jazz.groups.writer import GroupWriter
from reside.jazz.rules.group_state import READERS, WRITE_ONLY


async def give_role(group: KeyedGroup, writer: GroupWriter, member: str, role: str) -> None:
    """Give a loaded account or an agent a role.

    Args:
        group: the group.
        writer: writes to it as whoever gives the role.
        member: account id or agent id.
        role: the new role.

    Raises:
        NotPermitted: the writer may not give this role.
    """
    writer.check_role(member, role)
    if role in WRITE_ONLY:
        await _give_write_only(group, writer, member, role)
        return
    keys = [writer.read_key(), *writer.write_keys()]
    writer.set_role(member, role)
    for key in keys:
        writer.reveal(key, member)


async def _give_write_only(group: KeyedGroup, writer: GroupWriter, member: str, role: str) -> None:
    """Return who could read so far, can't read from now on: the read key is changed first."""
    rotation = await prepare_rotation(group) if writer.state.get(member) in READERS else None
    await writer.load_members()
    if rotation is not None:
        rotation.run(member)
    writer.set_role(member, role)
    writer.new_write_key(member)
