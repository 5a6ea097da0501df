"""Requests of an operator to the Sentinel, which answers in a value that only this account can read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from reside.cli.sentinel_maps import open_maps
from reside.model.errors import NotReady, ResideError
from reside.model.sentinel_data import ACTION, ANSWERS, ERROR, FILE, REQUESTS, RESULT

if TYPE_CHECKING:
    from reside.jazz import AccountId, CoMap, Node

WITHIN_S: Final = 330.0
"""Seconds to wait for an answer: an operation of the engine that runs on the stack ends by then."""


@dataclass(frozen=True)
class Answer:
    """What the Sentinel answers.

    Attributes:
        members: the members of the result.
        file: content of the file that came with it; empty without one.
    """

    members: dict[str, Any]
    file: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Operator:
    """An account that asks the Sentinel.

    Attributes:
        node: its node.
        sentinel: the Sentinel's account.
        requests: the Sentinel's map of requests.
        answers: the Sentinel's map of answers.
    """

    node: Node
    sentinel: AccountId
    requests: CoMap
    answers: CoMap

    async def ask(
        self, action: str, members: dict[str, Any], file: bytes | None = None, within_s: float = WITHIN_S
    ) -> Answer:
        """Request an action, wait for its answer and return it; what was written for it is deleted then.

        Args:
            action: what is requested.
            members: the other members of the request.
            file: content of a file that goes with the request; only the Sentinel can read it.
            within_s: seconds to wait.

        Raises:
            ResideError: the Sentinel refused; the message says why.
            NotReady: the Sentinel did not answer in time.
        """
        key, sent = uuid4().hex, None
        if file is not None:
            group = self.node.create_group("file for the Sentinel")
            await group.add_member(self.sentinel, "reader")
            sent = group.create_file(file)
            members = {**members, FILE: sent.id}
        self.requests.set(key, {ACTION: action, **members})
        try:
            await self.node.flush()
            async with asyncio.timeout(within_s):
                answer = await self._answer(key)
                if ERROR in answer:
                    raise ResideError(str(answer[ERROR]))
                return Answer(dict(answer[RESULT]), await self._file(answer.get(FILE)))
        except TimeoutError:
            raise NotReady(
                f"the Sentinel did not answer within {within_s:.0f} s: check that its pod is ready, then try again"
            ) from None
        finally:
            self.requests.delete(key)
            if sent is not None:
                sent.destroy()
            await self.node.flush()

    async def _answer(self, key: str) -> dict[str, Any]:
        async with self.answers.watch() as changes:
            async for changed in changes:
                if key in changed:
                    break
        answer = await self.node.load_map(str(self.answers[key]))
        async with answer.watch() as changes:
            async for changed in changes:
                if RESULT in changed or ERROR in changed:
                    return changed.as_dict()
        raise NotReady("the Sentinel has withdrawn its answer: try again")

    async def _file(self, file: object) -> bytes:
        return (await self.node.load_file(file)).read() if isinstance(file, str) else b""


async def open_operator(node: Node, sentinel: AccountId, permission: str) -> Operator:
    """Return this account as an operator of the Sentinel with this account.

    Args:
        node: the account's node.
        sentinel: the Sentinel's account.
        permission: the permission that the account needs.

    Raises:
        NotAllowed: this account lacks the permission.
        NotReady: the Sentinel has not published its data yet, or is of an earlier release.
    """
    answers, requests = await open_maps(node, sentinel, (ANSWERS, REQUESTS), permission, writes=True)
    return Operator(node, sentinel, requests, answers)
