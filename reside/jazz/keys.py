"""Finding the secret of a read key, in the order of jazz-protocol.md §5 ("Finding a read key secret").

A secret is public (`_for_everyone`), sealed to us, encrypted under another key that we can find, or sealed or encrypted
for a parent group whose keys we can find.
"""

from .covalue import Core
from .crypto import ReadKey, decrypt_key, transaction_material, unseal_key, unseal_key_for_group
from .errors import InvalidContent
from .permissions import GroupState
from .session import Transaction
from .store import Store


def find_secret(store: Store, group_id: str, key_id: str) -> str | None:
    """The secret of a group's read key, or None if this account can't have it (yet)."""
    return _find(store, group_id, key_id, set())


def current_key_id(store: Store, state: GroupState) -> str | None:
    """Id of the key that this account encrypts with in a group."""
    role = state.role_of(store.account_id)
    if role in (None, "writeOnly"):
        own = state.get(f"writeKeyFor_{store.account_id}")
        if isinstance(own, str):
            return own
        if role == "writeOnly":
            return None
    key_id = state.get("readKey")
    return key_id if isinstance(key_id, str) else None


def _find(store: Store, group_id: str, key_id: str, seen: set[tuple[str, str]]) -> str | None:
    core = store.core(group_id)
    if key_id in core.secrets:
        return core.secrets[key_id]
    state = store.group_state(group_id)
    if (group_id, key_id) in seen or not isinstance(state, GroupState):
        return None
    seen.add((group_id, key_id))
    secret = (
        _public(state, key_id)
        or _sealed_for_us(store, core, state, key_id)
        or _under_other_key(store, state, key_id, seen)
        or _through_parents(store, state, key_id, seen)
    )
    if secret is not None:
        core.secrets[key_id] = secret
    return secret


def _public(state: GroupState, key_id: str) -> str | None:
    value = state.get(f"{key_id}_for_everyone")
    return value if isinstance(value, str) and value.startswith("keySecret_z") else None


def _sealed_for_us(store: Store, core: Core, state: GroupState, key_id: str) -> str | None:
    me = store.agent.agent_id if core.co_id == store.account_id else store.account_id
    entry = state.entry(f"{key_id}_for_{me}")
    if entry is None or not isinstance(entry.value, str):
        return None
    revealer = store.agent_of(entry.transaction.author)
    if revealer is None:
        return None
    sealer_id = revealer.partition("/")[0]
    return unseal_key(entry.value, store.agent, sealer_id, _material(state, entry.transaction))


def _under_other_key(store: Store, state: GroupState, key_id: str, seen: set[tuple[str, str]]) -> str | None:
    for other_id, cipher in _ciphers(state, key_id):
        other = _find(store, state.co_id, other_id, seen)
        secret = _decrypt(cipher, key_id, other_id, other)
        if secret is not None:
            return secret
    return None


def _through_parents(store: Store, state: GroupState, key_id: str, seen: set[tuple[str, str]]) -> str | None:
    for parent_id in state.parents:
        parent = store.group_state(parent_id)
        if not isinstance(parent, GroupState):
            continue
        for other_id, cipher in _ciphers(state, key_id):
            secret = _decrypt(cipher, key_id, other_id, _find(store, parent_id, other_id, seen))
            if secret is not None:
                return secret
        for entry in reversed(parent.entries.get("groupSealer", [])):
            read_key_id, _, sealer_id = str(entry.value).partition("@")
            sealed = state.entry(f"{key_id}_sealedFor_{sealer_id}") if sealer_id else None
            read_key = None if sealed is None else _find(store, parent_id, read_key_id, seen)
            if sealed is None or read_key is None or not isinstance(sealed.value, str):
                continue
            secret = unseal_key_for_group(sealed.value, read_key, _material(state, sealed.transaction))
            if secret is not None:
                return secret
    return None


def _ciphers(state: GroupState, key_id: str) -> list[tuple[str, str]]:
    """The encryptions of a key under other keys: (other key's id, cipher text)."""
    prefix = f"{key_id}_for_key_"
    found = []
    for key in state.entries:
        value = state.get(key) if key.startswith(prefix) else None
        if isinstance(value, str):
            found.append((key[len(prefix) - len("key_") :], value))
    return found


def _decrypt(cipher: str, key_id: str, other_id: str, other_secret: str | None) -> str | None:
    if other_secret is None:
        return None
    try:
        return decrypt_key(cipher, key_id, ReadKey(other_id, other_secret))
    except InvalidContent:
        return None


def _material(state: GroupState, transaction: Transaction) -> str:
    return transaction_material(state.co_id, transaction.session, transaction.index)
