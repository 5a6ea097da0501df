"""Inboxes: messages to an account from anyone who may read its profile (docs/jazz-protocol.md, section 8).

An inbox is a feed that others may write but not read. The invite to it is in the owner's public profile. A message is a
map that sender and owner share: it refers to the payload and receives the owner's answer. The owner records handled
messages in a separate feed, by session and index of the message, so that each is handled once, even after a restart.
The format is that of jazz-tools, so either side can be JavaScript.
"""

from reside.jazz.inbox.inbox import Inbox, make_inbox
from reside.jazz.inbox.message import InboxMessage, MessageRefused
from reside.jazz.inbox.sender import InboxSender

__all__ = ["Inbox", "InboxMessage", "InboxSender", "MessageRefused", "make_inbox"]
