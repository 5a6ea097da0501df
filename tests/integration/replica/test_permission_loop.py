"""The permission loop carries out what Alpha expects, stores and publishes it, and retries failures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from support.eventually import eventually
from support.jazz_nodes import until as changes_to
from support.replicas import GREETING, AlphaDouble, greeting_contract

from reside.jazz import Node
from reside.model.lookup import granted_permissions
from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef
from reside.replica import Context, Replica
from reside.replica.control_block import parse_permission
from reside.replica.peers import Caller, peer_of
from reside.replica.profile import load_profile
from reside.testing.alpha import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.replicas import Identity

    from reside.jazz import CoMap, Credentials

pytestmark = pytest.mark.anyio

GRANTED = Grant(granted=True, params={"room": "blue"})


@pytest.fixture
def ref(client: Credentials) -> PermissionRef:
    return PermissionRef(client.account_id, GREETING, "greet")


class Handlers:
    """Records its calls, and fails as often as the test sets."""

    def __init__(self, failures: int = 0) -> None:
        self.calls: list[tuple[str, Grant]] = []
        self.failures = failures

    def replica(self) -> Replica:
        """Return a replica with these handlers."""
        replica = Replica(greeting_contract())
        replica.permission(GREETING, "greet", granted=self.granted, revoked=self.revoked, updated=self.updated)
        return replica

    async def granted(self, _: Context, __: PermissionRef, grant: Grant) -> None:
        """Record the call, or fail."""
        self.calls.append(("granted", grant))
        if self.failures:
            self.failures -= 1
            raise ValueError("the secret is sesame")

    async def revoked(self, _: Context, __: PermissionRef, grant: Grant) -> None:
        """Record the call."""
        self.calls.append(("revoked", grant))

    async def updated(self, _: Context, __: PermissionRef, grant: Grant) -> None:
        """Record the call."""
        self.calls.append(("updated", grant))


class _Hanging(Handlers):
    """Handlers of which some do not return, for all grantees or for one."""

    def __init__(self, kinds: set[str], *, account: str | None = None) -> None:
        super().__init__()
        self.kinds = kinds
        self.account = account
        self.reached = asyncio.Event()

    async def granted(self, context: Context, ref: PermissionRef, grant: Grant) -> None:
        """Record the call, or hang."""
        await self._hang("granted", ref)
        await super().granted(context, ref, grant)

    async def revoked(self, context: Context, ref: PermissionRef, grant: Grant) -> None:
        """Record the call, or hang."""
        await self._hang("revoked", ref)
        await super().revoked(context, ref, grant)

    async def updated(self, context: Context, ref: PermissionRef, grant: Grant) -> None:
        """Record the call, or hang."""
        await self._hang("updated", ref)
        await super().updated(context, ref, grant)

    async def _hang(self, kind: str, ref: PermissionRef) -> None:
        if kind in self.kinds and self.account in (None, ref.account):
            self.reached.set()
            await asyncio.Event().wait()


async def test_each_kind_of_change_runs_its_handler_once_and_is_stored(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef
) -> None:
    handlers, other = Handlers(), Grant(granted=True, params={"room": "red"})
    async with handlers.replica().start(identity.settings, serve=False):
        for grant in (GRANTED, other, Grant(granted=False)):
            await alpha_double.expect(identity, ref, grant)
            await alpha_double.until_current(identity, ref, grant)
    assert handlers.calls == [("granted", GRANTED), ("updated", other), ("revoked", Grant(granted=False))]


async def test_grants_expected_before_the_start_are_carried_out_at_the_start(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef
) -> None:
    await alpha_double.expect(identity, ref, GRANTED)
    handlers = Handlers()
    async with handlers.replica().start(identity.settings, serve=False):
        await alpha_double.until_current(identity, ref, GRANTED)
    async with handlers.replica().start(identity.settings, serve=False) as again:
        await alpha_double.expect(identity, PermissionRef(ref.account, GREETING, "greet:room", "a"), GRANTED)
        await alpha_double.until_current(identity, PermissionRef(ref.account, GREETING, "greet:room", "a"), GRANTED)
        assert again.rcb.find(ref) == identity.rcb.find(ref)
    assert handlers.calls == [("granted", GRANTED)]


async def test_a_failing_handler_is_retried_and_logged_without_its_message_and_current_is_unchanged(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = Handlers(failures=1)
    await alpha_double.expect(identity, ref, GRANTED)
    async with handlers.replica().start(identity.settings, serve=False):
        await alpha_double.until_current(identity, ref, GRANTED)
    assert handlers.calls == [("granted", GRANTED)] * 2
    found = identity.rcb.find(ref)
    assert found is not None
    log = capsys.readouterr().out
    assert "permission not carried out" in log
    assert "ValueError" in log
    assert "sesame" not in log
    entry = identity.rcb._entries[ref.key]
    assert [edit.value for edit in entry.history("current")] == [GRANTED.document()]


async def test_two_processes_of_a_replica_run_a_handler_once(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef
) -> None:
    handlers = Handlers()
    async with (
        handlers.replica().start(identity.settings, serve=False) as first,
        handlers.replica().start(identity.settings, serve=False) as second,
    ):
        await alpha_double.expect(identity, ref, GRANTED)
        await alpha_double.until_current(identity, ref, GRANTED)
        for context in (first, second):
            await until(context.rcb, lambda context=context: all(p.settled for p in context.rcb.permissions()))
            async with context.transaction(f"grant/{context.rcb.id}/{ref.account}"):
                pass  # the handler under this lock has ended
    assert handlers.calls == [("granted", GRANTED)]


async def test_a_permission_that_this_version_does_not_know_is_not_granted(
    alpha_double: AlphaDouble, identity: Identity, client: Credentials, ref: PermissionRef
) -> None:
    unknown = PermissionRef(client.account_id, GREETING, "sing")
    foreign = PermissionRef(client.account_id, "registry.reside.internal/other.v1", "greet")
    await alpha_double.expect(identity, unknown, GRANTED)
    await alpha_double.expect(identity, foreign, GRANTED)
    await alpha_double.expect(identity, ref, GRANTED)
    async with Handlers().replica().start(identity.settings, serve=False):
        await alpha_double.until_current(identity, ref, GRANTED)
    for never in (unknown, foreign):
        found = identity.rcb.find(never)
        assert found is not None
        assert found.current is None


async def test_a_revocation_counts_while_its_handler_hangs(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef
) -> None:
    handlers = _Hanging({"revoked"})
    await alpha_double.expect(identity, ref, GRANTED)
    async with handlers.replica().start(identity.settings, serve=False) as context:
        await until(context.rcb, lambda: context.rcb.is_granted(ref))
        await alpha_double.until_current(identity, ref, GRANTED)
        await alpha_double.expect(identity, ref, Grant(granted=False))
        async with asyncio.timeout(90):
            await handlers.reached.wait()
        assert not context.rcb.is_granted(ref)
        assert identity.rcb.find(ref) == ControlBlockPermission(ref, Grant(granted=False), GRANTED)


async def test_changed_params_are_not_in_force_before_their_handler_has_run(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef
) -> None:
    handlers = _Hanging({"updated"})
    await alpha_double.expect(identity, ref, GRANTED)
    async with handlers.replica().start(identity.settings, serve=False) as context:
        await until(context.rcb, lambda: context.rcb.is_granted(ref))
        await alpha_double.expect(identity, ref, Grant(granted=True, params={"room": "red"}))
        async with asyncio.timeout(90):
            await handlers.reached.wait()
        assert not context.rcb.is_granted(ref)


async def test_a_handler_that_hangs_holds_up_no_other_grantee(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef
) -> None:
    handlers = _Hanging({"granted"}, account=ref.account)
    others = [PermissionRef(f"co_z{number}", GREETING, "greet") for number in range(5)]
    await alpha_double.expect(identity, ref, GRANTED)
    async with handlers.replica().start(identity.settings, serve=False):
        async with asyncio.timeout(90):
            await handlers.reached.wait()
        for other in others:
            await alpha_double.expect(identity, other, GRANTED)
        for other in others:
            await alpha_double.until_current(identity, other, GRANTED)
        found = identity.rcb.find(ref)
        assert found is not None
        assert found.current is None


async def test_a_grant_of_a_contract_that_is_no_longer_implemented_ends(
    alpha_double: AlphaDouble, identity: Identity, ref: PermissionRef, capsys: pytest.CaptureFixture[str]
) -> None:
    await alpha_double.expect(identity, ref, GRANTED)
    async with Handlers().replica().start(identity.settings, serve=False):
        await alpha_double.until_current(identity, ref, GRANTED)
    async with Replica().start(identity.settings, serve=False) as context:
        await alpha_double.until_current(identity, ref, Grant(granted=False))
        await until(context.rcb, lambda: not context.rcb.is_granted(ref))
    assert "not carried out" not in capsys.readouterr().out


async def test_a_changed_grant_is_carried_out_without_a_look_at_others_of_the_grantee(
    alpha_double: AlphaDouble,
    identity: Identity,
    client: Credentials,
    ref: PermissionRef,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refs = [ref, *(PermissionRef(ref.account, GREETING, "greet:room", str(number)) for number in range(9))]
    for each in refs:
        await identity.rcb.set_expected(each, GRANTED)
        identity.rcb.set_current(each, GRANTED)
    await alpha_double.node.flush()
    read: list[str] = []

    def recorded(key: str, members: Mapping[str, Any]) -> ControlBlockPermission | None:
        read.append(key)
        return parse_permission(key, members)

    async with (
        Handlers().replica().start(identity.settings, serve=False) as context,
        Node(alpha_double.servers.jazz.url, client) as reader,
    ):
        await reader.login()
        published = await _published(reader, context, client)
        await changes_to(published, {each.key: {"room": "blue"} for each in refs})  # the pass at the start is over
        monkeypatch.setattr("reside.replica.control_block.parse_permission", recorded)
        await alpha_double.expect(identity, ref, Grant(granted=False))
        await alpha_double.until_current(identity, ref, Grant(granted=False))
        await changes_to(published, {each.key: {"room": "blue"} for each in refs[1:]})
    assert set(read) == {ref.key}


async def test_the_grantee_reads_what_it_was_granted_and_others_do_not(
    alpha_double: AlphaDouble, identity: Identity, client: Credentials, ref: PermissionRef
) -> None:
    stranger = await alpha_double.account("stranger")
    async with Handlers().replica().start(identity.settings, serve=False) as context:
        await alpha_double.expect(identity, ref, GRANTED)
        await alpha_double.until_current(identity, ref, GRANTED)
        async with Node(alpha_double.servers.jazz.url, client) as reader:
            await reader.login()
            published = await _published(reader, context, client)
            await changes_to(published, {ref.key: {"room": "blue"}})
            async with Node(alpha_double.servers.jazz.url, stranger) as curious:
                await curious.login()
                assert (await curious.load_map(published.id)).as_dict() == {}
            await alpha_double.expect(identity, ref, Grant(granted=False))
            await changes_to(published, {})
            await alpha_double.expect(identity, ref, GRANTED)
            await changes_to(published, {ref.key: {"room": "blue"}})


async def test_what_is_granted_is_published_and_found_as_in_the_first_implementation(
    alpha_double: AlphaDouble, identity: Identity, client: Credentials, ref: PermissionRef
) -> None:
    async with Handlers().replica().start(identity.settings) as context:
        await alpha_double.expect(identity, ref, GRANTED)
        await alpha_double.until_current(identity, ref, GRANTED)
        async with (
            Node(alpha_double.servers.jazz.url, client) as reader,
            httpx2.AsyncClient(trust_env=False) as http,
        ):
            await reader.login()
            published = await _published(reader, context, client)
            pointer = await context.node.find_unique_map(context.public.id, granted_permissions(client.account_id))
            assert pointer is not None
            assert pointer.as_dict() == {"target": published.id, "value": published.id}
            pointer.update({}, unset=["target"])  # the first implementation writes `value` only
            await context.node.flush()
            peer = await peer_of(Caller(reader, client, http, "internal"), context.node.account_id)
            assert await peer.until_granted(ref.name, ref.instance_id) == GRANTED.params
            assert await peer.granted(ref.name, ref.instance_id) == GRANTED.params


async def _published(reader: Node, context: Context, client: Credentials) -> CoMap:
    """Return the map that a grantee finds through the granting replica's account alone."""
    profile = await load_profile(reader, context.node.account_id)
    name = granted_permissions(client.account_id)

    async def found() -> CoMap | None:
        pointer = await reader.find_unique_map(profile.group.id, name)
        return None if pointer is None or "target" not in pointer else await reader.load_map(pointer["target"])

    shown = await eventually("the map of the grantee", found, lambda shown: shown is not None)
    assert shown is not None
    return shown
