"""Assignment of roles, with the keys that belong to each role (docs/jazz-protocol.md, section 5)."""

from reside.jazz.groups.rotation import KeyedGroup, prepare_rotation
from reside.jazz.groups.writer import GroupWriter
from reside.jazz.rules.group_state import READERS, WRITE_ONLY


async def give_role(group: KeyedGroup, writer: GroupWriter, member: str, role: str) -> None:
    """Give an agent or a loaded account a role.

    Args:
        group: the group.
        writer: writes to the group as the identity that gives the role.
        member: account id or agent id.
        role: the new role.

    Raises:
        NotPermitted: the writer may not assign this role.
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
    """Give a write-only role; rotate the read key first if the member could read."""
    rotation = await prepare_rotation(group) if writer.state.get(member) in READERS else None
    await writer.load_members()
    if rotation is not None:
        rotation.run(member)
    writer.set_role(member, role)
    writer.new_write_key(member)
