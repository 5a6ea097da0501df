"""Names on the command line for accounts and permissions, resolved to what Alpha's methods take."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reside.cli import config
from reside.cli.replicas import ReplicaView, Row
from reside.jazz import AccountId
from reside.model.alpha_contract import SUPER_ADMIN_PERMISSIONS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.model.errors import InvalidInput, NotReady
from reside.model.identities import resolved
from reside.replica.profile import load_profile
from reside.users.contract import USER_MANAGER_CONTRACT, USER_MANAGER_IDENTITY, USERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reside.cli.session import Session

_ACCOUNT_ID: Final = re.compile(r"co_z[1-9A-HJ-NP-Za-km-z]+")


@dataclass(frozen=True)
class Names:
    """The replicas of a cluster, the accounts of the operator, and the users of the user manager, by name."""

    replicas: Sequence[Row]
    own: Mapping[str, str]
    users: Mapping[str, str] = field(default_factory=dict)

    def account(self, text: str) -> str:
        """Return the id of an account: of a replica, one of the operator's, or a user, by name; or as given.

        Raises:
            InvalidInput: there is no such account, or several have the name.
        """
        if _ACCOUNT_ID.fullmatch(text):
            return text
        found = {str(row["account"]) for row in self.replicas if row["name"] == text}
        found |= {known[text] for known in (self.own, self.users) if text in known}
        if len(found) > 1:
            raise InvalidInput(
                f"{text!r} is the name of several of these: a replica, one of your accounts, a user: "
                "name the account by its id"
            )
        if not found:
            raise InvalidInput(f"{text!r} is no replica, none of your accounts, no user and no account id (co_z…)")
        return found.pop()

    def name_of(self, account: str) -> str:
        """Return the name of an account, or its id if it has none here."""
        replicas = {str(row["name"]): str(row["account"]) for row in self.replicas}
        for known in (replicas, self.users, self.own):
            for name, named in known.items():
                if named == account:
                    return name
        return account

    def replica_name(self, number: int) -> str:
        """Return the name of a replica, or its id if it does not exist any more."""
        return next((str(row["name"]) for row in self.replicas if row["id"] == number), str(number))

    def replica(self, name: str) -> Row:
        """Return a replica by name.

        Raises:
            InvalidInput: it does not exist.
        """
        for row in self.replicas:
            if row["name"] == name:
                return row
        raise InvalidInput(f"replica {name} does not exist: see `reside replica list`")

    def order(self, replica: str, contract: str | None, permission: str) -> dict[str, Any]:
        """Return the members `replica`, `contract` and `permission` of a call.

        Raises:
            InvalidInput: the replica does not exist, or it implements several contracts and none is named.
        """
        row = self.replica(replica)
        implemented = row["implements"]
        if contract is None and len(implemented) != 1:
            known = ", ".join(implemented) or "none"
            raise InvalidInput(f"replica {replica} implements {known}: name one with --contract")
        return {"replica": row["id"], "contract": contract or implemented[0], "permission": permission}


async def read_names(session: Session) -> Names:
    """Read the names of the cluster's replicas, of the operator's accounts, and of users if they are readable."""
    rows = await ReplicaView(session.node, session.data).rows()
    own = {account.name: account.account_id for account in config.load().accounts}
    return Names(rows, own, await _user_names(session, find_user_manager(rows)))


def find_user_manager(rows: Sequence[Row]) -> Row | None:
    """Return the user manager among replicas; None if there is none.

    Its image has the shipped identity: any other replica that implements its contract could give names to accounts.
    """
    return next((row for row in rows if row["identity"] == resolved(USER_MANAGER_IDENTITY) and row["implements"]), None)


async def _user_names(session: Session, manager: Row | None) -> dict[str, str]:
    """Return the accounts of users by name; empty without a user manager, or if this account may not read them."""
    if manager is None:
        return {}
    try:
        data = (await load_profile(session.node, AccountId(manager["account"]))).contracts[USER_MANAGER_CONTRACT]
    except (NotReady, KeyError):  # it has never run
        return {}
    root = await session.node.load_map(str(data))
    users = (await session.node.load_map(root[USERS])).items()
    return {str(stored["name"]): account for account, stored in users}


def super_admin_orders() -> list[dict[str, Any]]:
    """Return the members of the calls that grant all permissions of a super admin."""
    return [{"replica": ALPHA_ID, "contract": ALPHA_CONTRACT, "permission": name} for name in SUPER_ADMIN_PERMISSIONS]


def parse_params(text: str | None) -> dict[str, Any]:
    """Parse the params of a permission.

    Raises:
        InvalidInput: they are not a JSON object.
    """
    try:
        params = json.loads(text or "{}")
    except ValueError as error:
        raise InvalidInput(f"--params is not JSON: {error}") from None
    if not isinstance(params, dict):
        raise InvalidInput('--params is not a JSON object, such as \'{"room": "a"}\'')
    return params
