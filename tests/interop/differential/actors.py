"""The node of an account as the differential tests drive it: the same operations in Python and in JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from support.jazz_nodes import content

from reside.jazz import Group, Invite, NotPermitted
from reside.jazz.memory.readiness import missing_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from interop.javascript import JavaScript
    from support.jazz_controlled_nodes import SwitchedNode

    from reside.jazz import CoId

View: TypeAlias = dict[str, Any]
"""What an actor reads of a value: its content, and the verdict on every transaction."""


class Refused(Exception):  # noqa: N818 - an outcome, not a fault
    """The library of an actor refused an operation."""


class PythonActor:
    """One account's node in Python."""

    def __init__(self, name: str, node: SwitchedNode) -> None:
        self.name = name
        self.node = node
        self.account_id = str(node.account_id)

    async def set_online(self, *, online: bool) -> None:
        """Connect, or close the connection."""
        await (self.node.online() if online else self.node.offline())

    async def flush(self) -> None:
        """Wait until the server has everything that was written here."""
        await self.node.flush()

    async def has(self, co_id: str) -> bool:
        """Return whether a value is loaded, with its dependencies."""
        core = self.node._host.store.cores.get(co_id)
        return (
            core is not None
            and core.header is not None
            and missing_for(self.node._host.store, core, connected=True) == []
        )

    async def load(self, co_id: str) -> None:
        """Load a value."""
        await self.node.load(co_id)

    async def act(self, verb: str, **args: Any) -> Any:
        """Carry out an operation on loaded values.

        Raises:
            Refused: the account may not carry it out.
        """
        try:
            return await _PYTHON[verb](self.node, **args)
        except NotPermitted as error:
            raise Refused(str(error)) from None

    def counts(self, co_id: str) -> dict[str, int]:
        """Return how many transactions of each session of a value are here."""
        core = self.node._host.store.cores.get(co_id)
        sync = self.node._runtime._servers.connections[0].sync
        return {} if core is None else core.counts() | core.ignored_counts(sync)

    async def views(self, ids: Sequence[str], members: Sequence[str], times: Sequence[int]) -> list[View]:
        """Return this account's view of some values; roles in groups also at some times."""
        return [_view(await self.node.load(co_id), members, times) for co_id in ids]


class JavaScriptActor:
    """One account's node in the JavaScript child."""

    def __init__(self, name: str, js: JavaScript, account_id: str) -> None:
        self.name = name
        self.account_id = account_id
        self._js = js

    async def set_online(self, *, online: bool) -> None:
        """Connect, or close the connection."""
        await self._js("online" if online else "offline", actor=self.name)

    async def flush(self) -> None:
        """Wait until the server has everything that was written here."""
        await self._js("flush", actor=self.name)

    async def has(self, co_id: str) -> bool:
        """Return whether a value is loaded, with its dependencies."""
        return bool(await self._js("has", actor=self.name, id=co_id))

    async def load(self, co_id: str) -> None:
        """Load a value."""
        await self._js("load", actor=self.name, id=co_id)

    async def act(self, verb: str, **args: Any) -> Any:
        """Carry out an operation on loaded values.

        Raises:
            Refused: the account may not carry it out.
        """
        answer = await self._js("attempt", actor=self.name, verb=verb, args=args)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer["result"]

    async def views(self, ids: Sequence[str], members: Sequence[str], times: Sequence[int]) -> list[View]:
        """Return this account's view of some values; roles in groups also at some times."""
        found: list[View] = await self._js("views", actor=self.name, ids=ids, members=members, times=times)
        for view in found:
            view["verdicts"] = {tuple(verdict) for verdict in view["verdicts"]}
        return found


Actor: TypeAlias = PythonActor | JavaScriptActor


def _view(value: Any, members: Sequence[str], times: Sequence[int]) -> View:
    if isinstance(value, Group):
        verdicts = {
            (item.transaction.session, item.transaction.index, item.refusal is None) for item in value._state.verdicts
        }
        roles = [[value.role_of(member, at) for member in members] for at in (None, *times)]
        return {"content": roles, "verdicts": verdicts}
    # Whether this account has the key is independent of whether the author was allowed to write.
    judged = {(session, index, why is None or "can't be read" in why) for session, index, why in value.refusals()}
    return {"content": content(value), "verdicts": judged}


async def _transact(
    node: SwitchedNode,
    *,
    co_id: str,
    changes: list[Any],
    privacy: str,
    made_at: int,
    meta: dict[str, Any] | None = None,
) -> None:
    node.transact(co_id, changes, private=privacy == "private", made_at=made_at, meta=meta)


async def _map(node: SwitchedNode, *, group: str, init: dict[str, Any]) -> str:
    return (await node.load_group(group)).create_map(init).id


async def _list(node: SwitchedNode, *, group: str, init: list[Any]) -> str:
    return (await node.load_group(group)).create_list(init).id


async def _feed(node: SwitchedNode, *, group: str) -> str:
    return (await node.load_group(group)).create_feed().id


async def _group(node: SwitchedNode) -> str:
    return node.create_group().id


async def _set(node: SwitchedNode, *, co_id: str, key: str, value: Any) -> None:
    (await node.load_map(co_id)).set(key, value)


async def _delete(node: SwitchedNode, *, co_id: str, key: str) -> None:
    (await node.load_map(co_id)).delete(key)


async def _append(node: SwitchedNode, *, co_id: str, values: list[Any]) -> None:
    (await node.load_list(co_id)).extend(values)


async def _insert(node: SwitchedNode, *, co_id: str, at: int, value: Any) -> None:
    items = await node.load_list(co_id)
    items.insert(at % (len(items) + 1), value)


async def _remove(node: SwitchedNode, *, co_id: str, at: int) -> None:
    items = await node.load_list(co_id)
    if len(items):
        items.remove(at % len(items))


async def _push(node: SwitchedNode, *, co_id: str, value: Any) -> None:
    (await node.load_feed(co_id)).push(value)


async def _add_member(node: SwitchedNode, *, group: str, member: Any, role: Any) -> None:
    await (await node.load_group(group)).add_member(member, role)


async def _remove_member(node: SwitchedNode, *, group: str, member: Any) -> None:
    await (await node.load_group(group)).remove_member(member)


async def _extend(node: SwitchedNode, *, group: str, parent: str, role: str) -> None:
    await (await node.load_group(group)).extend(await node.load_group(parent), role)


async def _revoke_extension(node: SwitchedNode, *, group: str, parent: str) -> None:
    await (await node.load_group(group)).revoke_extension(await node.load_group(parent))


async def _text(node: SwitchedNode, *, group: str, init: str) -> str:
    return (await node.load_group(group)).create_text(init).id


async def _insert_text(node: SwitchedNode, *, co_id: str, at: int, text: str) -> None:
    value = await node.load_text(co_id)
    value.insert(at % (len(value) + 1), text)


async def _delete_text(node: SwitchedNode, *, co_id: str, at: int, count: int) -> None:
    value = await node.load_text(co_id)
    if len(value):
        value.delete_range(at % len(value), at % len(value) + count)


async def _replace(node: SwitchedNode, *, co_id: str, at: int, value: Any) -> None:
    items = await node.load_list(co_id)
    if len(items):
        items.replace(at % len(items), value)


async def _create_invite(node: SwitchedNode, *, group: str, role: Any) -> str:
    return (await (await node.load_group(group)).create_invite(role)).secret


async def _accept_invite(node: SwitchedNode, *, group: CoId, secret: str) -> None:
    await node.accept_invite(Invite(group, secret), timeout=60)


_PYTHON: dict[str, Callable[..., Awaitable[Any]]] = {
    "transact": _transact,
    "group": _group,
    "map": _map,
    "list": _list,
    "feed": _feed,
    "set": _set,
    "delete": _delete,
    "append": _append,
    "insert": _insert,
    "remove": _remove,
    "push": _push,
    "text": _text,
    "insertText": _insert_text,
    "deleteText": _delete_text,
    "replace": _replace,
    "createInvite": _create_invite,
    "acceptInvite": _accept_invite,
    "addMember": _add_member,
    "removeMember": _remove_member,
    "extend": _extend,
    "revokeExtension": _revoke_extension,
}
