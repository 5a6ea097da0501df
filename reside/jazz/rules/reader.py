"""Who looks for keys: the node's account, or for a moment the agent of an invite."""

from dataclasses import dataclass, field

from reside.jazz.wire.crypto import Agent


@dataclass(frozen=True, eq=False)
class Reader:
    """An identity in groups.

    Attributes:
        member: Its account id, or its agent id (an invite has no account).
        agent: Its keys.
        secrets: The key secrets that it found, by group and key id. Empty for the node's account: its secrets are
            kept with the groups.
    """

    member: str
    agent: Agent
    secrets: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
