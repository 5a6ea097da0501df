"""A native asyncio client for Jazz (CoJSON), interoperable with the official JavaScript packages (cojson 0.20.19).

It is independent of ReSide. Servers relay every signed transaction and check no permissions. So this package validates
each transaction itself: callers read only what the roles of the owning group allowed at the time of writing.

Start at `Node`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from reside.jazz.errors import (
    InvalidArgument,
    InvalidContent,
    InvalidCredentials,
    InvalidState,
    JazzError,
    JazzTimeout,
    JazzUnavailable,
    NodeClosed,
    NotPermitted,
    StoreFailed,
    TokenRefused,
    ValueDeleted,
    ValueNotFound,
    WrongKind,
)
from reside.jazz.events.watch import Watch
from reside.jazz.groups.account import Account, Credentials
from reside.jazz.groups.group import Group
from reside.jazz.groups.invites import Invite, InviteRole
from reside.jazz.groups.passphrase import new_passphrase
from reside.jazz.ids import EVERYONE, AccountId, AgentId, CoId, Everyone, Json, Role, SessionId
from reside.jazz.node import Node, now_ms
from reside.jazz.operations.fence import fenced_writes
from reside.jazz.removals import WritePolicy
from reside.jazz.values.cofeed import CoFeed, FeedEntry
from reside.jazz.values.colist import CoList, ListEdit
from reside.jazz.values.comap import CoMap, Edit
from reside.jazz.values.stream import FileStream
from reside.jazz.values.streamview import FileInfo
from reside.jazz.values.text import CoPlainText
from reside.jazz.values.tracking import Tracker
from reside.jazz.values.value import Value

if TYPE_CHECKING:
    from reside.jazz.disk.database import SqliteStore
    from reside.jazz.inbox import Inbox, InboxMessage, InboxSender, MessageRefused, make_inbox
    from reside.jazz.tokens import (
        RequestVerifier,
        UsedTokens,
        UsedTokensInMemory,
        can_share,
        read_request_account,
        sign_jazz_token,
        sign_request,
        verify_jazz_token,
    )
    from reside.jazz.tokens.files import UsedTokensOnDisk

__all__ = [
    "EVERYONE",
    "Account",
    "AccountId",
    "AgentId",
    "CoFeed",
    "CoId",
    "CoList",
    "CoMap",
    "CoPlainText",
    "Credentials",
    "Edit",
    "Everyone",
    "FeedEntry",
    "FileInfo",
    "FileStream",
    "Group",
    "Inbox",
    "InboxMessage",
    "InboxSender",
    "InvalidArgument",
    "InvalidContent",
    "InvalidCredentials",
    "InvalidState",
    "Invite",
    "InviteRole",
    "JazzError",
    "JazzTimeout",
    "JazzUnavailable",
    "Json",
    "ListEdit",
    "MessageRefused",
    "Node",
    "NodeClosed",
    "NotPermitted",
    "RequestVerifier",
    "Role",
    "SessionId",
    "SqliteStore",
    "StoreFailed",
    "TokenRefused",
    "Tracker",
    "UsedTokens",
    "UsedTokensInMemory",
    "UsedTokensOnDisk",
    "Value",
    "ValueDeleted",
    "ValueNotFound",
    "Watch",
    "WritePolicy",
    "WrongKind",
    "can_share",
    "fenced_writes",
    "make_inbox",
    "new_passphrase",
    "now_ms",
    "read_request_account",
    "sign_jazz_token",
    "sign_request",
    "verify_jazz_token",
]

_LAZY: Final = {
    "SqliteStore": "disk.database",
    "Inbox": "inbox",
    "InboxMessage": "inbox",
    "InboxSender": "inbox",
    "MessageRefused": "inbox",
    "make_inbox": "inbox",
    "RequestVerifier": "tokens",
    "UsedTokens": "tokens",
    "UsedTokensInMemory": "tokens",
    "can_share": "tokens",
    "UsedTokensOnDisk": "tokens.files",
    "read_request_account": "tokens",
    "sign_jazz_token": "tokens",
    "sign_request": "tokens",
    "verify_jazz_token": "tokens",
}
"""Names that many programs do not use, with the modules that are imported at their first use."""


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
