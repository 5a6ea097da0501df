"""Repair of groups that older versions wrote incompletely, as in the JavaScript library.

A group without a group sealer can't be extended by an account that is not its member. A group with a new read key that
was not published can't be read by `everyone`, even if `everyone` is a reader. The sealer is derived from the read key,
so admins that repair a group at the same time write the same value.
"""

from reside.jazz.groups.group import Group
from reside.jazz.ids import EVERYONE
from reside.jazz.rules.group_state import ADMINS, READERS
from reside.jazz.wire.crypto import ReadKey, group_sealer_value


def repair_once(group: Group) -> None:
    """Write what is missing in a completely loaded group, if this account is a direct admin or manager with its key.

    This is done once for each object. Later, something may be missing because only a part of a rotation has arrived.
    """
    if group._repaired:
        return
    group._repaired = True
    state, writer = group._state, group._writer
    key_id = state.get("readKey")
    if not isinstance(key_id, str) or state.get(writer.member) not in ADMINS:
        return
    unpublished = state.get(EVERYONE) in READERS and state.reveal(f"{key_id}_for_{EVERYONE}", key_id) is None
    unsealed = state.get("groupSealer") is None
    secret = writer.secret(key_id) if unpublished or unsealed else None
    if secret is None:
        return
    if unpublished:
        writer.set(f"{key_id}_for_{EVERYONE}", secret)
    if unsealed:
        writer.set("groupSealer", group_sealer_value(ReadKey(key_id, secret)))
