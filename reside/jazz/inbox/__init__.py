"""Inboxes: messages to an account from whoever may see its profile (docs/jazz-protocol.md, section 8).

An inbox is a feed that strangers may write to but not read, with the invite to it in the owner's public profile. A
message is a map that sender and owner share: it names the payload, and takes the owner's answer. What the owner dealt
with is noted in a feed of its own, by the place of the message in the sender's session, so that each is handled once,
also after a restart. The form is that of jazz-tools, so both sides can be JavaScript.
"""

from reside.jazz.inbox.inbox import Inbox, make_inbox
from reside.jazz.inbox.message import InboxMessage, MessageRefused
from reside.jazz.inbox.sender import InboxSender

__all__ = ["Inbox", "InboxMessage", "InboxSender", "MessageRefused", "make_inbox"]
