"""What admins of old groups complete when they load one, as the JavaScript library does.

A group without a sealer can't become the parent of a stranger's group; one whose read key changed without being
published again can't be read by the everyone that it names as a reader. Older versions wrote both. The sealer follows
from the read key, so that admins who heal at the same time write the same.
"""

from reside.jazz.groups.group import Group
from reside.jazz.ids import EVERYONE
from reside.jazz.rules.group_state import ADMINS, READERS
from reside.jazz.wire.crypto import ReadKey, group_sealer_value


def repair_once(group: Group) -> None:
    """Write what a completely loaded group lacks, if this account is a direct admin or manager that has its key.

    Once for each object: what looks like a lack later may be another's change of keys that has arrived by half.
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
