"""Invites: secrets with which an account can give itself a role in a group (docs/jazz-protocol.md, section 5).

The secret is the seed of an agent that is a member of the group with a role such as `writerInvite`. An account accepts
an invite by writing its own role to the group as that agent, and the read key sealed by that agent. An invite can be
used any number of times until its agent is removed from the group (`Group.remove_member` with the agent's id). A
removed member that knows an open invite can join again.
"""

import secrets
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from blake3 import blake3

from reside.jazz.errors import InvalidArgument, InvalidContent
from reside.jazz.groups.membership import give_role
from reside.jazz.groups.rotation import KeyedGroup
from reside.jazz.ids import AgentId, CoId, is_co_id
from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.encoding import b58decode, b58encode

InviteRole: TypeAlias = Literal["admin", "manager", "writer", "reader", "writeOnly"]
"""A role that an invite can give."""

_PREFIX: Final = "inviteSecret_z"
_SEED_BYTES: Final = 32
_LINK_PARTS: Final = (4, 5)


@dataclass(frozen=True)
class Invite:
    """An invite to a group, or to a value of it.

    Attributes:
        value_id: the group, or a value that the group owns.
        secret: `inviteSecret_z…`; never shown by `repr`.
        hint: a text in the link, for the application that opens it; None if there is none.
    """

    value_id: CoId
    secret: str = field(repr=False)
    hint: str | None = None

    @property
    def _agent(self) -> Agent:
        """The key pairs of the invite's agent."""
        return _agent_of(self.secret)

    @property
    def agent_id(self) -> AgentId:
        """The id of the invite's agent, which is a member of the group; public."""
        return AgentId(self._agent.agent_id)

    @property
    def ticket(self) -> str:
        """The form `<value id>/<secret>`, in which a profile offers its inbox. It is a secret."""
        return f"{self.value_id}/{self.secret}"

    def link(self, base_url: str) -> str:
        """Return a jazz-tools link: `<base>#/invite/[<hint>/]<value id>/<secret>`. It is a secret."""
        hint = "" if self.hint is None else f"{self.hint}/"
        return f"{base_url}#/invite/{hint}{self.ticket}"

    @staticmethod
    def parse(text: str) -> "Invite":
        """Parse a link or a ticket.

        Raises:
            InvalidArgument: the text is neither.
        """
        parts = (urlsplit(text).fragment if "#" in text else f"/invite/{text}").split("/")
        if len(parts) not in _LINK_PARTS or parts[:2] != ["", "invite"] or not is_co_id(parts[-2]):
            raise InvalidArgument("this is not an invite; one looks like https://…#/invite/co_z…/inviteSecret_z…")
        _agent_of(parts[-1])
        return Invite(CoId(parts[-2]), parts[-1], parts[2] if len(parts) > min(_LINK_PARTS) else None)


async def create_invite(group: KeyedGroup, role: InviteRole, *, value_id: CoId, hint: str | None) -> Invite:
    """Create an invite and make its agent a member of a group; see `Group.create_invite`."""
    if role not in get_args(InviteRole):
        raise InvalidArgument(f"an invite can give {', '.join(get_args(InviteRole))}, not {role}")
    invite = Invite(value_id, _PREFIX + b58encode(secrets.token_bytes(_SEED_BYTES)), hint)
    await give_role(group, group._writer, invite.agent_id, f"{role}Invite")
    return invite


def _agent_of(secret: str) -> Agent:
    # Decoding takes time quadratic in the length, and the text may come from another account's profile.
    is_possible = secret.startswith(_PREFIX) and len(secret) <= len(_PREFIX) + 2 * _SEED_BYTES
    try:
        seed = b58decode(secret.removeprefix(_PREFIX)) if is_possible else b""
    except InvalidContent:
        seed = b""
    if len(seed) != _SEED_BYTES:
        raise InvalidArgument("an invite's secret is malformed; it looks like inviteSecret_z…")
    return Agent.from_secret(agent_secret_from_seed(seed))


def agent_secret_from_seed(seed: bytes) -> str:
    """Return the agent secret of a 32-byte seed (docs/jazz-protocol.md, section 1)."""
    sealer, signer = (b58encode(blake3(context + seed).digest()) for context in (b"seal", b"sign"))
    return f"sealerSecret_z{sealer}/signerSecret_z{signer}"
