"""What content depends on, and what of it other clients can't read: judged before a value is touched.

A client handles nothing of a value until all of its dependencies are there (docs/jazz-protocol.md, section 10). So the
server stores only what has all of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from nacl.bindings import crypto_core_ed25519_is_valid_point

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import author_of, is_account_id, is_co_id
from reside.jazz.memory.covalue import Batch
from reside.jazz.wire.deep_json import MAX_NESTING
from reside.jazz.wire.encoding import b58decode, parse_json
from reside.jazz.wire.header import Header, header_of
from reside.jazz.wire.session import Transaction

_PARENT: Final = "parent_"
_SIGNER: Final = "/signer_z"
_KEY_BYTES: Final = 32
_MAX_KEY_CHARACTERS: Final = 44


def checked_header(co_id: str, raw: Any) -> Header:
    """Return the header of a value if every client can use it.

    Raises:
        InvalidContent: it is malformed, another value's, or names an admin whose key is unusable.
    """
    header = header_of(co_id, raw)
    admin = header.initial_admin
    if admin is not None and not is_co_id(admin) and not _is_usable_agent(admin):
        raise InvalidContent("a group's initial admin is neither an account nor an agent with a usable key")
    return header


def header_needs(header: Header) -> list[str]:
    """Return the values that a header depends on: its owner, and the source of a branch.

    Raises:
        InvalidContent: one of them can't exist.
    """
    return _ids(header.needs(), header.co_id)


def batch_needs(header: Header, batch: Batch) -> list[str]:
    """Return the values that a batch depends on: its author's account; in a group, also members and parents.

    Raises:
        InvalidContent: one of them can't exist, or JavaScript clients could not read the group any more.
    """
    author = author_of(batch.session)
    needed: list[Any] = [author] if is_account_id(author) else []
    if header.is_group:
        for item in batch.transactions:
            needed += _named_in(item)
    return _ids(needed, header.co_id)


def _named_in(transaction: Transaction) -> Iterator[str]:
    if transaction.is_private:
        return
    for change in _changes(transaction):
        if not isinstance(change, dict | list):
            raise InvalidContent("a change of a group is not an object")
        if not isinstance(change, dict) or change.get("op") != "set":
            continue
        key = change.get("key")
        if not isinstance(key, str):
            raise InvalidContent("a change of a group sets no key")
        if key.startswith((_PARENT, "co_")):
            yield key.removeprefix(_PARENT)


def _changes(transaction: Transaction) -> Sequence[Any]:
    """Return the changes of a transaction of a group; none if they are not JSON, because then they do not count."""
    try:
        changes = parse_json(transaction.payload)
    except InvalidContent:
        if transaction.payload.count("[") + transaction.payload.count("{") > MAX_NESTING:
            raise InvalidContent("a change of a group is nested too deeply") from None
        return ()
    if not isinstance(changes, list):
        raise InvalidContent("a group's changes are not a list")
    return changes


def _ids(needed: Sequence[Any], own: str) -> list[str]:
    if not all(is_co_id(named) for named in needed):
        raise InvalidContent("it depends on a value that can't exist")
    return [named for named in dict.fromkeys(needed) if named != own]


def _is_usable_agent(agent: str) -> bool:
    sealer, found, key = agent.partition(_SIGNER)
    if not found or not sealer.startswith("sealer_") or len(key) > _MAX_KEY_CHARACTERS:
        return False
    try:
        data = b58decode(key)
    except InvalidContent:
        return False
    return len(data) == _KEY_BYTES and bool(crypto_core_ed25519_is_valid_point(data))
