"""Accounts: identities with a public profile, stored as groups of one agent (docs/jazz-protocol.md, section 6)."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from reside.jazz.errors import InvalidArgument, InvalidContent, InvalidState
from reside.jazz.groups.group import Group
from reside.jazz.groups.invites import Invite, InviteRole
from reside.jazz.groups.passphrase import agent_secret_from_passphrase
from reside.jazz.ids import AccountId, AgentId, CoId, Everyone, Role
from reside.jazz.memory.covalue import Core
from reside.jazz.values.comap import CoMap
from reside.jazz.values.host import Host
from reside.jazz.values.value import Value
from reside.jazz.wire.crypto import Agent, ReadKey, new_agent_secret
from reside.jazz.wire.header import account_header


@dataclass(frozen=True)
class Credentials:
    """The credentials of a node's account.

    Attributes:
        account_id: derived from the secret.
        agent_secret: `sealerSecret_z…/signerSecret_z…`; never shown by `repr`.
    """

    account_id: AccountId
    agent_secret: str = field(repr=False)

    @cached_property
    def _agent(self) -> Agent:
        """The key pairs of the secret.

        Raises:
            InvalidCredentials: the secret is malformed.
        """
        return Agent.from_secret(self.agent_secret)

    @property
    def agent_id(self) -> str:
        """`<sealer id>/<signer id>`, public.

        Raises:
            InvalidCredentials: the secret is malformed.
        """
        return self._agent.agent_id

    @staticmethod
    def generate() -> "Credentials":
        """Generate random credentials, without network access. `Node.register` publishes the account."""
        return Credentials.from_secret(new_agent_secret())

    @staticmethod
    def from_secret(agent_secret: str) -> "Credentials":
        """Return the credentials of an agent secret.

        Raises:
            InvalidCredentials: the secret is malformed.
        """
        agent = Agent.from_secret(agent_secret)
        return Credentials(AccountId(account_header(agent.agent_id).co_id), agent_secret)

    @staticmethod
    def from_passphrase(passphrase: str) -> "Credentials":
        """Return the credentials of a passphrase of 24 words; see `new_passphrase`. jazz-tools computes the same.

        Raises:
            InvalidCredentials: it is not a passphrase.
            ImportError: the extra `passphrase` is not installed.
        """
        return Credentials.from_secret(agent_secret_from_passphrase(passphrase))


class Account(Group):
    """An account, with a profile that everyone can read."""

    kind: ClassVar[str] = "account"

    def __init__(self, host: Host, core: Core) -> None:
        super().__init__(host, core)
        self._profile: CoMap | None = None

    @property
    def account_id(self) -> AccountId:
        """The account's id, which is also its value's id."""
        return AccountId(self.id)

    @property
    def agent_id(self) -> str:
        """The account's public keys."""
        return self._core.header.initial_admin or "" if self._core.header is not None else ""

    @property
    def profile_id(self) -> CoId | None:
        """The id of the profile map; None if the account has no profile yet."""
        profile = self._state.get("profile")
        return CoId(profile) if isinstance(profile, str) else None

    @property
    def profile(self) -> CoMap:
        """The profile, which `load_profile` loads.

        Raises:
            InvalidState: the profile is not loaded.
        """
        if self._profile is None:
            raise InvalidState(f"the profile of {self.id} is not loaded; await load_profile() first")
        return self._profile

    @property
    def name(self) -> str | None:
        """The name in the profile; None if the profile is not loaded or has no name."""
        name = None if self._profile is None else self._profile.get("name")
        return name if isinstance(name, str) else None

    async def load_profile(self, *, timeout: float = 30.0) -> CoMap:  # noqa: ASYNC109 - as in every load of a node
        """Load the profile map.

        Raises:
            InvalidContent: the account has no profile.
            ValueNotFound: the server does not have the profile.
        """
        profile_id = self.profile_id
        if profile_id is None:
            raise InvalidContent(f"the account {self.id} has no profile: its registration was not finished")
        self._profile = await self._host.load_as(profile_id, CoMap, timeout=timeout)
        return self._profile

    @property
    def root_id(self) -> CoId | None:
        """The id of the account's root, a map from which its programs find their values; None if it has none."""
        root = self._state.get("root")
        return CoId(root) if isinstance(root, str) else None

    async def load_root(self, *, timeout: float = 30.0) -> CoMap:  # noqa: ASYNC109 - as in every load of a node
        """Load the account's root. Who can read it depends on the group of the map.

        Raises:
            InvalidContent: the account has no root.
            ValueNotFound: the server does not have the root.
        """
        root_id = self.root_id
        if root_id is None:
            raise InvalidContent(f"the account {self.id} has no root: its owner sets one with set_root()")
        return await self._host.load_as(root_id, CoMap, timeout=timeout)

    def set_root(self, root: CoMap) -> None:
        """Make a map the account's root. If several devices do so concurrently, the last one wins.

        Raises:
            NotPermitted: it is another account than that of the node.
        """
        self._check_is_own("set the root of")
        self._writer.set("root", root.id)

    async def add_member(self, member: AccountId | AgentId | Everyone, role: Role) -> None:
        """Raise `InvalidContent`, because an account has no members."""
        raise self._no_members(f"add {member} as {role} to")

    async def remove_member(self, member: AccountId | AgentId | Everyone) -> None:
        """Raise `InvalidContent`, because an account has no members."""
        raise self._no_members(f"remove {member} from")

    async def create_invite(
        self,
        role: InviteRole,
        *,
        value: Value | None = None,  # noqa: ARG002 - as in Group
        hint: str | None = None,  # noqa: ARG002 - as in Group
    ) -> Invite:
        """Raise `InvalidContent`, because an account has no members."""
        raise self._no_members(f"invite a {role} to")

    async def extend(self, parent: Group, role: str = "extend") -> None:
        """Raise `InvalidContent`, because an account has no members."""
        raise self._no_members(f"extend {parent.id} as {role} with")

    def _initialise(self) -> None:
        """Write the first transactions of a new account, as its agent."""
        agent = self._host.store.agent
        key = ReadKey.generate()
        self._writer.set(agent.agent_id, "admin")
        self._writer.reveal(key, agent.agent_id)
        self._writer.set("readKey", key.key_id)

    def _set_profile(self, profile: CoMap) -> None:
        """Make a map the account's profile."""
        self._writer.set("profile", profile.id)
        self._profile = profile

    def _check_is_own(self, act: str) -> None:
        if self.account_id != self._host.account_id:
            raise self._writer.refusal(act, "the account itself")

    def _no_members(self, act: str) -> InvalidArgument:
        return InvalidArgument(f"can't {act} the account {self.id}: accounts have no members; give the value a group")
