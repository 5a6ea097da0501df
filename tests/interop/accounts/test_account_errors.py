"""What accounts and invites refuse; each error names its subject."""

import pytest
from support.jazz_nodes import Nodes

from reside.jazz import Group, InvalidArgument, InvalidState, Invite, NotPermitted

pytestmark = pytest.mark.anyio


async def test_an_account_has_no_members(nodes: Nodes) -> None:
    alice, bob = await nodes("alice"), await nodes("bob")
    account, group = alice.account, alice.create_group()
    assert account.account_id == alice.account_id
    assert account.name == "alice"
    with pytest.raises(InvalidArgument, match=f"add {bob.account_id} as reader to the account {account.id}"):
        await account.add_member(bob.account_id, "reader")
    with pytest.raises(InvalidArgument, match=account.id):
        await account.remove_member(bob.account_id)
    with pytest.raises(InvalidArgument, match=account.id):
        await account.extend(group)
    theirs = await bob.load_account(alice.account_id)
    with pytest.raises(InvalidState, match="load_profile"):
        _ = theirs.profile
    assert theirs.name is None
    assert (await theirs.load_profile())["name"] == "alice"


async def test_a_group_refuses_invalid_roles(nodes: Nodes) -> None:
    alice, bob = await nodes("alice"), await nodes("bob")
    group, other = alice.create_group("named"), alice.create_group()
    assert group.name == "named"
    with pytest.raises(InvalidArgument, match="everyone can be"):
        await group.add_member("everyone", "admin")
    with pytest.raises(InvalidArgument, match="a parent's members can be"):
        await group.extend(other, "owner")
    await group.add_member("everyone", "reader")
    count = len(group._state.verdicts)
    await group.add_member("everyone", "reader")
    await group.remove_member(bob.account_id)
    assert len(group._state.verdicts) == count
    await group.add_member(bob.account_id, "manager")
    await alice.flush()
    managed = await bob.load_group(group.id)
    with pytest.raises(NotPermitted, match=group.id):
        await managed.extend(await bob.load_group(other.id))
    stranger = await nodes("stranger")
    theirs: Group = await stranger.load_group(other.id)
    with pytest.raises(NotPermitted, match=other.id):
        await theirs.revoke_extension(theirs)
    with pytest.raises(NotPermitted, match=other.id):
        await theirs.add_member(stranger.account_id, "admin")
    with pytest.raises(NotPermitted, match=other.id):
        theirs.create_map({"x": 1})
    with pytest.raises(NotPermitted, match="the read key"):
        theirs._writer.read_key()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://app.example/",
        "https://app.example/#/invite/co_zAbc",
        "https://app.example/#/other/co_zAbc/inviteSecret_z111",
        "https://app.example/#/invite/co_zAbc/inviteSecret_z111",
        "co_zAbc/inviteSecret_z0OIl",
        "co_zAbc/keySecret_z111",
        "nonsense/inviteSecret_z111",
    ],
)
def test_an_invalid_invite_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="looks like"):
        Invite.parse(text)
