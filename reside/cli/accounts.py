"""`reside account`: Jazz accounts of the operator, created offline; a cluster gets an account at its first use."""

from __future__ import annotations

from typing import Annotated

import typer

from reside.cli import config, listing, output
from reside.cli.listing import Column, ListOptions
from reside.cli.shared_options import with_options
from reside.cli.vault import Vault
from reside.jazz import Credentials

app = typer.Typer(no_args_is_help=True)
COLUMNS = (Column("name"), Column("accountId", header="account"), Column("contexts", wide=True))


def create_account(name: str) -> config.Account:
    """Create an account and save it in the configuration.

    Raises:
        InvalidInput: it can't be a name, or exists already.
    """
    config.check_account_name(name)
    credentials = Credentials.generate()
    account = config.Account(
        name=name,
        account_id=credentials.account_id,
        encrypted_agent_secret=Vault().encrypt(credentials.agent_secret),
    )
    config.change(lambda current: current.with_account(account))
    return account


def credentials_of(account: config.Account) -> Credentials:
    """Return the account's credentials, decrypted with this user's key."""
    secret = Vault().decrypt(account.encrypted_agent_secret, f"account {account.name!r}")
    return Credentials.from_secret(secret)


@app.command("create")
def create(name: Annotated[str, typer.Argument(help="Name of the new account in the local configuration.")]) -> None:
    """Create an account; its secret is stored on this machine only, encrypted."""
    account = create_account(name)
    output.console.print(f"account {account.name} created: {account.account_id}", soft_wrap=True)


@app.command("list")
@with_options(ListOptions)
def list_accounts(*, options: ListOptions) -> None:
    """List the accounts."""
    found = config.load()
    used = {a.name: [context.name for context in found.contexts if context.account == a.name] for a in found.accounts}
    records = [{"name": a.name, "accountId": a.account_id, "contexts": used[a.name]} for a in found.accounts]
    listing.show(records, COLUMNS, options, empty="no account: create one with `reside account create NAME`")
