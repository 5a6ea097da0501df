"""A native asyncio client for Jazz (CoJSON), interoperable with the official JavaScript packages (cojson 0.20.19).

It knows nothing of ReSide. Servers relay whatever is signed and check no permissions, so this package validates every
transaction itself: what a caller reads was allowed, by the roles of the owning group, at the time it was written.

Start at `Node`.
"""

from .disk import SqliteStore
from .errors import (
    InvalidContent,
    InvalidCredentials,
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
from .groups.account import Account, Credentials
from .groups.group import Group
from .groups.invites import Invite, InviteRole
from .ids import EVERYONE, AccountId, AgentId, CoId, Everyone, Json, Role, SessionId
from .inbox import Inbox, InboxMessage, InboxSender, MessageRefused, make_inbox
from .node import Node, now_ms
from .removals import WritePolicy
from .replay import UsedTokens, UsedTokensInMemory, UsedTokensOnDisk
from .tokens import RequestVerifier, read_request_account, sign_jazz_token, sign_request, verify_jazz_token
from .values.cofeed import CoFeed, FeedEntry
from .values.colist import CoList, ListEdit
from .values.comap import CoMap, Edit
from .values.stream import FileInfo, FileStream
from .values.text import CoPlainText
from .values.value import Value
from .watch import Watch

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
    "InvalidContent",
    "InvalidCredentials",
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
    "UsedTokens",
    "UsedTokensInMemory",
    "UsedTokensOnDisk",
    "Value",
    "ValueDeleted",
    "ValueNotFound",
    "Watch",
    "WritePolicy",
    "WrongKind",
    "make_inbox",
    "now_ms",
    "read_request_account",
    "sign_jazz_token",
    "sign_request",
    "verify_jazz_token",
]
