"""The public names of `reside.jazz`; its independence is tested in test_standalone.py."""

import pytest

import reside.jazz
from reside.jazz import Credentials, InvalidCredentials, Node, NodeClosed, NotPermitted


def test_the_public_names_are_exactly_these() -> None:
    names = """
        Account
        AccountId
        AgentId
        CoFeed
        CoId
        CoList
        CoMap
        CoPlainText
        Credentials
        EVERYONE
        Edit
        Everyone
        FeedEntry
        FileInfo
        FileStream
        Group
        Inbox
        InboxMessage
        InboxSender
        InvalidArgument
        InvalidContent
        InvalidCredentials
        InvalidState
        Invite
        InviteRole
        JazzError
        JazzTimeout
        JazzUnavailable
        Json
        ListEdit
        MessageRefused
        Node
        NodeClosed
        NotPermitted
        RequestVerifier
        Role
        SessionId
        SqliteStore
        StoreFailed
        TokenRefused
        Tracker
        UsedTokens
        UsedTokensInMemory
        UsedTokensOnDisk
        Value
        ValueDeleted
        ValueNotFound
        Watch
        WritePolicy
        WrongKind
        can_share
        fenced_writes
        make_inbox
        new_passphrase
        now_ms
        read_request_account
        sign_jazz_token
        sign_request
        verify_jazz_token
    """
    expected = names.split()
    assert sorted(reside.jazz.__all__) == sorted(expected)
    assert all(hasattr(reside.jazz, name) for name in expected)
    assert set(expected) <= set(dir(reside.jazz))
    assert not hasattr(reside.jazz, "SqliteStorage")


def test_credentials_follow_from_the_secret_and_do_not_show_it() -> None:
    made = Credentials.generate()
    assert Credentials.from_secret(made.agent_secret) == made
    for part in made.agent_secret.split("/"):
        assert part not in repr(made)
        assert part not in str(made)


@pytest.mark.parametrize("secret", ["", "x", "sealerSecret_z1/signerSecret_z1", "sealerSecret_z0/signerSecret_zO"])
def test_a_malformed_secret_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(InvalidCredentials, match="the agent secret is malformed") as refused:
        Credentials.from_secret(secret)
    assert not secret or secret not in str(refused.value)


def test_a_secret_of_another_account_is_refused() -> None:
    one, two = Credentials.generate(), Credentials.generate()
    with pytest.raises(InvalidCredentials, match=one.account_id):
        Node("ws://nowhere", Credentials(one.account_id, two.agent_secret))


def test_a_node_that_was_not_entered_says_so() -> None:
    with pytest.raises(NodeClosed, match="async with"):
        Node("ws://nowhere", Credentials.generate()).create_group()


def test_a_refusal_names_value_group_and_role() -> None:
    error = NotPermitted("co_zValue", group="co_zGroup", role=None, act="write to", needs="writer")
    assert str(error) == "not permitted to write to co_zValue: role in group co_zGroup is none, needs writer"
    assert (error.value, error.group, error.role) == ("co_zValue", "co_zGroup", None)
