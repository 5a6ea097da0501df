"""Search for the secret of a read key, in the order of docs/jazz-protocol.md, section 5.

A secret is public (`_for_everyone`), sealed to the reader, encrypted under another key that the reader can find, or
sealed or encrypted for a parent group whose keys the reader can find. Each rotation adds a link to such chains, so they
are followed without recursion.
"""

from collections.abc import Generator, MutableMapping
from typing import Protocol, TypeAlias

from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.reader import Reader
from reside.jazz.wire.crypto import ReadKey, decrypt_key, transaction_material, unseal_key, unseal_key_for_group
from reside.jazz.wire.session import Transaction

_Goal: TypeAlias = tuple[str, str]
"""A key to find: group id, key id."""
_Search: TypeAlias = Generator[_Goal, str | None, str | None]
"""Yields other keys that it needs, receives their secrets, and returns the secret of its goal."""


class Groups(Protocol):
    """The groups in which keys are searched; implemented by `Store`.

    Attributes:
        reader: this node's account.
    """

    reader: Reader

    def group_state(self, co_id: str) -> GroupState | str:
        """Return the validated state of a group, or the reason why there is none."""

    def agent_of(self, member: str) -> str | None:
        """Return the agent id of an account or agent; None if the account is not loaded."""

    def secrets_of(self, group_id: str) -> MutableMapping[str, str]:
        """Return the secrets of a group's keys that this node's account has found."""


def find_secret(store: Groups, group_id: str, key_id: str, reader: Reader | None = None) -> str | None:
    """Return the secret of a group's read key; None if the reader (default: this node's account) can't find it now."""
    reader = reader or store.reader
    known = _known(store, group_id, reader).get(key_id)
    return known if known is not None else _run(store, reader, (group_id, key_id))


def current_key_id(state: GroupState, member: str) -> str | None:
    """Return the id of the key with which a member encrypts in a group; None if it has none."""
    role = state.role_of(member)
    if role in (None, "writeOnly"):
        own = state.get(f"writeKeyFor_{member}")
        if isinstance(own, str):
            return own
        if role == "writeOnly":
            return None
    key_id = state.get("readKey")
    return key_id if isinstance(key_id, str) else None


def _known(store: Groups, group_id: str, reader: Reader) -> MutableMapping[str, str]:
    """Return the secrets that a reader has found in a group."""
    if reader is store.reader:
        return store.secrets_of(group_id)
    return reader.secrets.setdefault(group_id, {})


def _run(store: Groups, reader: Reader, goal: _Goal) -> str | None:
    """Return the result of a search, after running the searches that it depends on."""
    seen = {goal}
    stack = [(goal, _search(store, reader, goal))]
    answer: str | None = None
    while stack:
        current, search = stack[-1]
        try:
            needed = search.send(answer)
        except StopIteration as end:
            answer = end.value
            if answer is not None:
                _known(store, current[0], reader)[current[1]] = answer
            stack.pop()
            continue
        answer = _known(store, needed[0], reader).get(needed[1])
        if answer is None and needed not in seen:
            seen.add(needed)
            stack.append((needed, _search(store, reader, needed)))
    return answer


def _search(store: Groups, reader: Reader, goal: _Goal) -> _Search:
    group_id, key_id = goal
    state = store.group_state(group_id)
    if not isinstance(state, GroupState):
        return None
    secret = _public(state, key_id) or _sealed_for(store, reader, state, key_id)
    if secret is None:
        secret = yield from _under_other_key(state, key_id, state.co_id)
    for parent_id in state.parents:
        if secret is not None:
            break
        parent = store.group_state(parent_id)
        if isinstance(parent, GroupState):
            secret = yield from _under_other_key(state, key_id, parent_id)
            if secret is None:
                secret = yield from _sealed_for_group(state, key_id, parent)
    return secret


def _public(state: GroupState, key_id: str) -> str | None:
    entry = state.reveal(f"{key_id}_for_everyone", key_id)
    value = None if entry is None else entry.value
    return value if isinstance(value, str) and value.startswith("keySecret_z") else None


def _sealed_for(store: Groups, reader: Reader, state: GroupState, key_id: str) -> str | None:
    member = reader.agent.agent_id if state.co_id == reader.member else reader.member
    entry = state.reveal(f"{key_id}_for_{member}", key_id)
    if entry is None or not isinstance(entry.value, str):
        return None
    revealer = store.agent_of(entry.transaction.author)
    if revealer is None:
        return None
    sealer_id = revealer.partition("/")[0]
    return unseal_key(entry.value, reader.agent, sealer_id, _material(state, entry.transaction))


def _under_other_key(state: GroupState, key_id: str, group_id: str) -> _Search:
    """Search for a key of the group `group_id` (itself or a parent) under which the key was encrypted."""
    for other_id in tuple(state.encrypted_under.get(key_id, ())):
        entry = state.reveal(f"{key_id}_for_{other_id}", key_id)
        if entry is None or not isinstance(entry.value, str):
            continue
        other = yield group_id, other_id
        secret = None if other is None else decrypt_key(entry.value, key_id, ReadKey(other_id, other))
        if secret is not None:
            return secret
    return None


def _sealed_for_group(state: GroupState, key_id: str, parent: GroupState) -> _Search:
    """Search for the read key of one of the parent's group sealers, the newest first, to which the key was sealed."""
    for sealer in reversed(parent.entries.get("groupSealer", [])):
        read_key_id, _, sealer_id = str(sealer.value).rpartition("@")
        sealed = state.reveal(f"{key_id}_sealedFor_{sealer_id}", key_id) if read_key_id else None
        if sealed is None or not isinstance(sealed.value, str):
            continue
        read_key = yield parent.co_id, read_key_id
        if read_key is None:
            continue
        secret = unseal_key_for_group(sealed.value, read_key, _material(state, sealed.transaction))
        if secret is not None:
            return secret
    return None


def _material(state: GroupState, transaction: Transaction) -> str:
    return transaction_material(state.co_id, transaction.session, transaction.index)
