"""The identity that searches for keys: the node's account, or the agent of an invite that is being accepted."""

from dataclasses import dataclass, field

from reside.jazz.wire.crypto import Agent


@dataclass(frozen=True, eq=False)
class Reader:
    """An identity in groups.

    Attributes:
        member: account id, or agent id for an invite, which has no account.
        agent: its key pairs.
        secrets: the key secrets that it has found, by group and key id. Empty for the node's account, whose secrets
            are cached with the groups.
    """

    member: str
    agent: Agent
    secrets: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
