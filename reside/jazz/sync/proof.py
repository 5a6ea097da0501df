"""Proof of an account in the address of a connection, for servers that require one (docs/jazz-protocol.md, section 10).

Whoever gets hold of a proof can connect as its account for a minute, so it must not reach a log or an error.
"""

import base64
from typing import Final
from urllib.parse import urlsplit

from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.encoding import stable_json

_PURPOSE: Final = "reside.jazz proof"


def proven_address(url: str, agent: Agent, account_id: str, now_ms: int) -> str:
    """Return the address of a server with a fresh proof of an account.

    Args:
        url: the server; other servers than this host and port refuse the proof.
        agent: the key pairs of the account.
        account_id: the account.
        now_ms: the time in ms since the epoch; the server accepts a difference of a minute to its clock.
    """
    host = urlsplit(url).netloc.rpartition("@")[2].lower()
    statement = [account_id, agent.agent_id, now_ms, host]
    signature = agent.sign(stable_json([_PURPOSE, *statement]))
    token = base64.urlsafe_b64encode(stable_json([*statement, signature]).encode()).decode().rstrip("=")
    return f"{url}{'&' if '?' in url else '?'}proof={token}"
