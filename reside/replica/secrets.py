"""Secrets of the replica *secret* in the code of other replicas: read, follow, set, and run a program with them.

    greeter = Replica()

    @greeter.main
    async def main(context: Context) -> None:
        await run_program(context, ["/app/server"], {"DATABASE_PASSWORD": "database-password"})

The manifest requires `secret.v1` with the permission `secret:read` for each secret (docs/secrets.md). A value comes
from Jazz, encrypted for its readers. It is in the memory of the process and in the environment of the program only:
in no object of Kubernetes, and in no stack.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import stamina
import structlog

from reside.jazz import CoId, JazzTimeout, JazzUnavailable, ValueDeleted, ValueNotFound
from reside.model.errors import InvalidInput, NotAllowed, NotReady
from reside.model.lookup import TARGET
from reside.model.secret_contract import (
    READ_SECRET,
    SECRET_CONTRACT,
    SET_SECRET,
    STATE,
    VALUE,
    NamedState,
    SecretState,
    SetSecret,
    check_name,
    check_value,
    secret_by_name,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from reside.jazz import AccountId, CoMap, Group, Node
    from reside.replica.context import Context

_log = structlog.get_logger(__name__)

_READS: Final = 8
"""Attempts to read a value that is replaced meanwhile."""
_LONGEST_PAUSE_S: Final = 2.0
"""Longest pause between two looks for the replica *secret*, which may start after this one."""
_STOP_WITHIN_S: Final = 10.0
"""Seconds for a program to end after SIGTERM, before it is killed."""
_OWN_VARIABLES: Final = "RESIDE_"
"""Prefix of the variables of the replica itself, with its agent secret: a program does not get them."""


@dataclass(frozen=True)
class ReadSecret:
    """A value as it was read; it is not printed."""

    version: int
    value: str = field(repr=False)


async def read_secret(context: Context, name: str, *, within_s: float | None = None) -> str:
    """Return the value of a secret, once this replica may read it and it has one.

    Args:
        context: the replica.
        name: name of the secret.
        within_s: seconds to wait; None: without limit.

    Raises:
        NotReady: it is not so in time.
        NotAllowed: the permission was revoked meanwhile.
    """
    try:
        async with asyncio.timeout(within_s), following(context, name) as found:
            return (await anext(found)).value
    except TimeoutError:
        raise NotReady(f"secret {name} has no value that this replica may read within {within_s:g} s") from None


@asynccontextmanager
async def following(context: Context, name: str) -> AsyncIterator[AsyncIterator[ReadSecret]]:
    """Yield an iterator over the current value of a secret and all later ones; it may skip some.

    It waits until the replica *secret* has started and granted the permission, and while the secret has no value.

    Raises:
        NotAllowed: this replica may not read the secret any more.
    """
    check_name(name)
    async for attempt in stamina.retry_context(on=NotReady, attempts=None, timeout=None, wait_max=_LONGEST_PAUSE_S):
        with attempt:
            peer = await context.peer(SECRET_CONTRACT)
    await peer.until_granted(READ_SECRET, name)
    found = _values(SecretReader(context.node, peer.profile.group.id, name))
    try:
        yield found
    finally:
        await found.aclose()


async def _values(reader: SecretReader) -> AsyncGenerator[ReadSecret]:
    changed, last = asyncio.Event(), 0
    try:
        while True:
            changed.clear()
            current = await reader.read(changed)
            if current is not None and current.version != last:
                last = current.version
                yield current
            else:
                await changed.wait()
    finally:
        reader.close()


async def write_secret(context: Context, name: str, value: str) -> int:
    """Set a secret, and return its new version. It needs the permission `secret:write` for this secret.

    Raises:
        InvalidInput: a secret can't have this name or value.
        NotAllowed: the permission is not granted.
    """
    check_name(name)
    peer = await context.peer(SECRET_CONTRACT)
    async with handed_over(context.node, peer.account, value) as handed:
        answer = await peer.call(SET_SECRET, SetSecret(name=name, value=handed), returns=NamedState)
    return answer.version


async def run_program(context: Context, command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a program with secrets in its environment, and run it again whenever one of them gets another value.

    The program gets the environment of this process without the variables of the replica itself (`RESIDE_…`). It is
    asked to end with SIGTERM, and killed after 10 s; also when this call is cancelled.

    Args:
        context: the replica.
        command: the program and its arguments.
        variables: variable of the environment → name of the secret.

    Returns:
        the exit code of the program, once it ends by itself; negative: the signal that ended it.

    Raises:
        NotAllowed: this replica may not read one of the secrets any more; the program is ended.
        OSError: the program can't be started.
    """
    environment = _Environment(variables)
    try:
        async with asyncio.TaskGroup() as group:
            followers = [group.create_task(environment.follow(context, name)) for name in set(variables.values())]
            try:
                return await _run_again(command, environment)
            finally:
                for each in followers:
                    each.cancel()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


class SecretReader:
    """Reads one secret, as long as this account may.

    Args:
        node: the node of the account.
        public: id of the group of the profile of the replica *secret*.
        name: name of the secret.
    """

    def __init__(self, node: Node, public: str, name: str) -> None:
        self._node = node
        self._public = public
        self._name = name
        self._watched: dict[str, Callable[[], None]] = {}

    async def read(self, changed: asyncio.Event | None = None) -> ReadSecret | None:
        """Return the current value; None if the secret has none.

        Args:
            changed: is set at each later change of what was read, until `close`.

        Raises:
            InvalidInput: the secret does not exist.
            NotAllowed: this account may not read it.
            NotReady: the value can't be read now.
        """
        for _ in range(_READS):
            with suppress(ValueNotFound):  # another value, or another map, has replaced it
                state = SecretState.parse((await self._find(changed)).get(STATE))
                if state is None or state.value is None:
                    return None
                value = (await self._node.load_map(CoId(state.value))).get(VALUE)
                if isinstance(value, str):
                    return ReadSecret(state.version, value)
            await self._node.catch_up()
        raise NotReady(f"the value of secret {self._name} can't be read now: try again")

    def close(self) -> None:
        """Unsubscribe from all changes."""
        while self._watched:
            self._watched.popitem()[1]()

    async def _find(self, changed: asyncio.Event | None) -> CoMap:
        """Return the map of the secret."""
        pointer = await self._node.find_unique_map(self._public, secret_by_name(self._name))
        target = None if pointer is None else pointer.get(TARGET)
        if pointer is None or not isinstance(target, str):
            raise InvalidInput(f"secret {self._name} does not exist: set it with `reside secret set {self._name}`")
        found = await self._node.load_map(CoId(target))
        if found.deleted:
            raise ValueDeleted(found.id)
        if not found.has_owner or found.group.my_role is None:
            raise NotAllowed(
                f"secret {self._name} can't be read by {self._node.account_id}, which lacks {READ_SECRET} for it: "
                f"grant it with `reside permission grant ACCOUNT secret {READ_SECRET} --instance {self._name}`"
            )
        if changed is not None:
            for value in (pointer, found, found.group):
                if value.id not in self._watched:
                    self._watched[value.id] = value.on_change(lambda _: changed.set())
        return found


@asynccontextmanager
async def handed_over(node: Node, receiver: AccountId, value: str) -> AsyncIterator[str]:
    """Write a value into a map that only this account and the replica *secret* can read; yield the map's id.

    The map is deleted at the end of the block, and the sync server erases it. If the sync server is away then, the
    deletion arrives later, should this process live on.

    Raises:
        InvalidInput: a secret can't have this value.
    """
    check_value(value)
    made = (await _handing_group(node, receiver)).create_map({VALUE: value})
    try:
        await node.flush()
        yield made.id
    finally:
        made.destroy()
        with suppress(JazzTimeout, JazzUnavailable):  # what became of the call is more important
            await node.flush()


async def _handing_group(node: Node, receiver: AccountId) -> Group:
    """Return the group of the values that this account hands over; a private map of the account names it."""
    name = f"secret-values.{receiver}"
    found = await node.find_unique_map(node.account.id, name)
    if found is None:
        group = node.create_group()
        await group.add_member(receiver, "reader")
        found = await node.unique_map(node.account, name, {"group": group.id})
    return await node.load_group(str(found["group"]))


class _Environment:
    """The variables of a program, which change with their secrets."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.changed = asyncio.Event()
        self._variables = dict(variables)
        self._values: dict[str, str] = {}

    async def follow(self, context: Context, name: str) -> None:
        """Keep the variables of one secret up to date until cancelled."""
        async with following(context, name) as values:
            async for found in values:
                self._values[name] = found.value
                self.changed.set()

    def is_complete(self) -> bool:
        """Return whether all secrets have a value."""
        return self._values.keys() >= set(self._variables.values())

    def now(self) -> dict[str, str]:
        """Return the environment of a program that starts now."""
        own = {key: value for key, value in os.environ.items() if not key.startswith(_OWN_VARIABLES)}
        return own | {variable: self._values[name] for variable, name in self._variables.items()}


async def _run_again(command: Sequence[str], environment: _Environment) -> int:
    while not environment.is_complete():
        environment.changed.clear()
        await environment.changed.wait()
    while True:
        environment.changed.clear()
        process = await asyncio.create_subprocess_exec(*command, env=environment.now())
        ended, changed = asyncio.create_task(process.wait()), asyncio.create_task(environment.changed.wait())
        try:
            await asyncio.wait({ended, changed}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                return ended.result()
            _log.info("a secret has another value: the program is run again", program=command[0])
        finally:
            changed.cancel()
            await _stop(process, ended)


async def _stop(process: asyncio.subprocess.Process, ended: asyncio.Task[int]) -> None:
    """End a program, also while this task is cancelled."""
    if ended.done():
        return
    with suppress(ProcessLookupError):
        process.terminate()
    done, _ = await asyncio.wait({ended}, timeout=_STOP_WITHIN_S)
    if not done:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.wait({ended})
