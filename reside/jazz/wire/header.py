"""The immutable header of a value (docs/jazz-protocol.md, section 2).

A value's id is the hash of its header, so the owner of a value can't be changed.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from sys import intern
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from reside.jazz.errors import InvalidArgument, InvalidContent
from reside.jazz.ids import CoId, Json, is_co_id
from reside.jazz.wire.dates import ms_of
from reside.jazz.wire.encoding import compact_json, parse_json
from reside.jazz.wire.header_id import header_id
from reside.jazz.wire.random_ids import new_uniqueness

ValueType: TypeAlias = Literal["comap", "colist", "costream", "coplaintext"]
Unique: TypeAlias = str | Mapping[str, str]
"""The name that distinguishes unique values of one group and type."""
_VALUE_TYPES: Final[tuple[ValueType, ...]] = ("comap", "colist", "costream", "coplaintext")


class Header(NamedTuple):
    """A header of valid shape.

    Attributes:
        co_id: the id that this header hashes to.
        value_type: the kind of content that the transactions build.
        owner: id of the owning group or account; None for groups, accounts and unowned values.
        initial_admin: first admin of a group or account; None for other values.
        is_account: whether the value is an account.
        restrict_deletion: whether only admins and managers may delete items.
        source: the value that this is a branch of; None if it is not a branch.
        text: the header as on the wire, JSON; as a text it takes less memory.
        is_file: whether the value is a binary stream.
    """

    co_id: CoId
    value_type: ValueType
    owner: CoId | None
    initial_admin: str | None
    is_account: bool
    restrict_deletion: bool
    source: CoId | None
    text: str
    is_file: bool

    @property
    def raw(self) -> dict[str, Any]:
        """The header as on the wire, parsed."""
        parsed: dict[str, Any] = parse_json(self.text)
        return parsed

    @property
    def is_group(self) -> bool:
        """Whether the value has members and roles: it is a group or an account."""
        return self.initial_admin is not None

    def needs(self) -> list[CoId]:
        """Return the values that it refers to: the owner, and the source of a branch."""
        return [needed for needed in (self.owner, self.source) if needed is not None]

    @property
    def name(self) -> str | None:
        """A group's name."""
        meta = self.raw.get("meta")
        name = meta.get("name") if isinstance(meta, dict) else None
        return name if isinstance(name, str) else None

    @property
    def branch_name(self) -> str | None:
        """A branch's name."""
        meta = self.raw.get("meta")
        name = meta.get("branch") if self.source is not None and isinstance(meta, dict) else None
        return name if isinstance(name, str) else None

    @property
    def created_at(self) -> int | None:
        """The time of creation in ms since the epoch; None if the header has none, as that of a unique value."""
        created = self.raw.get("createdAt")
        return ms_of(created) if isinstance(created, str) else None

    @property
    def priority(self) -> int:
        """The priority of the content in the sender's queue; accounts and groups go first."""
        if self.is_group:
            return 0
        return 6 if self.is_file else 3


def parse_header(raw: Any) -> Header:
    """Check the shape of a header.

    Raises:
        InvalidContent: this is not a header of the protocol.
    """
    if not isinstance(raw, dict):
        raise InvalidContent("a header is not an object")
    co_id = header_id(raw)
    value_type, ruleset, meta = raw.get("type"), raw["ruleset"], raw.get("meta")
    if value_type not in _VALUE_TYPES or not isinstance(meta, dict | None):
        raise InvalidContent("a header has an unknown type or meta")
    kind = ruleset.get("type")
    owner = initial_admin = None
    if kind == "group":
        initial_admin = ruleset.get("initialAdmin")
        if value_type != "comap" or not isinstance(initial_admin, str):
            raise InvalidContent("a group's header needs the type comap and an initialAdmin")
    elif kind == "ownedByGroup":
        owner = ruleset.get("group")
        if not isinstance(owner, str) or not is_co_id(owner):
            raise InvalidContent("a header has no id of an owning group")
    source = meta.get("source") if isinstance(meta, dict) else None
    if source and not is_co_id(source):
        raise InvalidContent("a header names a branch's source that can't exist")
    try:
        text = compact_json(raw)
    except InvalidArgument as error:
        raise InvalidContent(f"a header is {error}") from None
    return Header(
        co_id,
        _VALUE_TYPES[_VALUE_TYPES.index(value_type)],  # one text for all values, as for the owner
        CoId(intern(owner)) if owner is not None else None,
        initial_admin,
        is_account=isinstance(meta, dict) and meta.get("type") == "account" and initial_admin is not None,
        restrict_deletion=ruleset.get("restrictDeletion") is True,
        source=CoId(source) if source else None,
        text=text,
        is_file=value_type == "costream" and isinstance(meta, dict) and meta.get("type") == "binary",
    )


def header_of(co_id: str, raw: Any) -> Header:
    """Check the shape of the header of a value.

    Raises:
        InvalidContent: this is not a header of the protocol, or it is another value's.
    """
    header = parse_header(raw)
    if header.co_id != co_id:
        raise InvalidContent(f"the header received for {co_id} belongs to {header.co_id}")
    return header._replace(co_id=CoId(co_id))  # the same text, so that there is one copy of it


def account_header(agent_id: str) -> Header:
    """Return the header of an agent's account. It has no random part, so the account id follows from the secret."""
    return parse_header(
        {
            "type": "comap",
            "ruleset": {"type": "group", "initialAdmin": agent_id},
            "meta": {"type": "account"},
            "createdAt": None,
            "uniqueness": None,
        }
    )


def group_header(admin: str, name: str | None, created_ms: int) -> Header:
    """Return the header of a new group."""
    return parse_header(
        {
            "type": "comap",
            "ruleset": {"type": "group", "initialAdmin": admin},
            "meta": None if name is None else {"name": name},
            "createdAt": _iso(created_ms),
            "uniqueness": new_uniqueness(),
        }
    )


def owned_header(
    value_type: ValueType,
    owner: str,
    created_ms: int,
    *,
    meta: Mapping[str, Json] | None = None,
    restrict_deletion: bool = False,
) -> Header:
    """Return the header of a new value owned by a group or an account."""
    restriction = {"restrictDeletion": True} if restrict_deletion else {}
    return parse_header(
        {
            "type": value_type,
            "ruleset": {"type": "ownedByGroup", "group": owner, **restriction},
            "meta": None if meta is None else dict(meta),
            "createdAt": _iso(created_ms),
            "uniqueness": new_uniqueness(),
        }
    )


def unique_header(value_type: ValueType, owner: str, unique: Unique) -> Header:
    """Return the header of the value of this type and unique name in a group; it has no creation time."""
    if not unique:
        raise InvalidArgument("the unique name of a value must not be empty")
    if not isinstance(unique, str) and not all(isinstance(part, str) for pair in unique.items() for part in pair):
        raise InvalidArgument("the unique name of a value is a text, or a mapping of texts to texts")
    return _named_header(value_type, owner, unique) if isinstance(unique, str) else _unique(value_type, owner, unique)


def _unique(value_type: ValueType, owner: str, unique: Unique) -> Header:
    return parse_header(
        {
            "type": value_type,
            "ruleset": {"type": "ownedByGroup", "group": owner},
            "meta": None,
            "uniqueness": unique if isinstance(unique, str) else dict(unique),
        }
    )


@lru_cache(maxsize=1024)
def _named_header(value_type: ValueType, owner: str, name: str) -> Header:
    """Return the header of a unique value with a text as its name: programs look for the same ones again and again."""
    return _unique(value_type, owner, name)


def branch_header(source: Header, owner: str, name: str) -> Header:
    """Return the header of the branch of this name and owner; its id follows from them and its source."""
    if not name:
        raise InvalidArgument("the name of a branch must not be empty")
    return parse_header(
        {
            "type": source.value_type,
            "ruleset": {"type": "ownedByGroup", "group": owner},
            "meta": {"branch": name, "source": source.co_id},
            "uniqueness": "",
        }
    )


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
