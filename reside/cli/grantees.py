"""Names on the command line for accounts and permissions, resolved to what Alpha's methods take."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.cli import config
from reside.cli.replicas import ReplicaView, Row
from reside.model.alpha_contract import SUPER_ADMIN_PERMISSIONS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.cli.session import Session

_ACCOUNT_ID: Final = re.compile(r"co_z[1-9A-HJ-NP-Za-km-z]+")


@dataclass(frozen=True)
class Names:
    """The replicas of a cluster and the accounts of the operator, by name."""

    replicas: Sequence[Row]
    own: dict[str, str]

    def account(self, text: str) -> str:
        """Return the id of an account: of a replica by name, of one of the operator's accounts by name, or as given.

        Raises:
            InvalidInput: there is no such account, or the name is that of a replica and of an account of the operator.
        """
        if _ACCOUNT_ID.fullmatch(text):
            return text
        found = {str(row["account"]) for row in self.replicas if row["name"] == text}
        found |= {self.own[text]} if text in self.own else set()
        if len(found) > 1:
            raise InvalidInput(f"{text!r} is a replica and one of your accounts: name the account by its id")
        if not found:
            raise InvalidInput(f"{text!r} is no replica, none of your accounts and no account id (co_z…)")
        return found.pop()

    def name_of(self, account: str) -> str:
        """Return the name of an account, or its id if it has none here."""
        known = {str(row["account"]): str(row["name"]) for row in self.replicas}
        return known.get(account) or {value: key for key, value in self.own.items()}.get(account, account)

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
    """Read the names of the cluster's replicas and of the operator's accounts."""
    rows = await ReplicaView(session.node, session.data).rows()
    return Names(rows, {account.name: account.account_id for account in config.load().accounts})


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
