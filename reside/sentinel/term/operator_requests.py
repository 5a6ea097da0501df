"""Carry out what operators request, and answer it; runs in the leading Sentinel only.

An answer is a map in a group of its own, which only the account that asked can read. It is named in `operatorAnswers`
before it has any content, so whatever happens in between, it is found again and deleted: once its request is deleted
or does not count any more. A request without a complete answer is carried out again, by the next leader too, so every
action must be idempotent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import structlog

from reside.common.transience import is_expected
from reside.common.workqueue import WorkQueue
from reside.jazz import AccountId, ValueDeleted
from reside.model.errors import ResideError
from reside.model.sentinel_data import ERROR, FILE, RESULT, SHOW_LOGS, SINCE
from reside.sentinel.backoff import APPLY_BACKOFF
from reside.sentinel.contract.operator_requests import read_request, remaining_s
from reside.sentinel.errors import fault_text, judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.jazz import CoMap
    from reside.sentinel.contract.operator_requests import OperatorRequest
    from reside.sentinel.term.context import TermContext

_log = structlog.get_logger(__name__)
_PARALLEL: Final = 4
LOOK_AGAIN_S: Final = 1.0
"""Seconds after which a request that waits for something is looked at again."""
MOST_WAITING: Final = 16
"""Requests of one account that may wait at the same time: each costs the API server a request a second."""


@dataclass(frozen=True)
class Result:
    """What an action returns.

    Attributes:
        members: the members of the result.
        file: content of a file that goes with the answer.
    """

    members: Mapping[str, Any]
    file: bytes | None = field(default=None, repr=False)


Action = Callable[["OperatorRequest"], Awaitable[Result | None]]
"""Carries out a request; None if there is nothing to answer yet, and it is to be called again in `LOOK_AGAIN_S`.

A request that waits takes none of the places in which requests are carried out."""


class OperatorRequests:
    """The queue of operator requests of one term.

    Args:
        context: the parts of the term.
        actions: action → what carries it out, and returns the result.
    """

    def __init__(self, context: TermContext, actions: Mapping[str, Action]) -> None:
        self._context = context
        self._actions = actions
        self.queue = WorkQueue("operator request", self._handle, workers=_PARALLEL, backoff=APPLY_BACKOFF, judge=judge)
        self._waiting = Waiting()
        requests = context.data.requests
        self._tracker = requests.track()
        self._tracker.take()
        self.examine()
        self._unsubscribe = requests.on_change(lambda _: self._changed())

    def examine(self, after: float = 0.0) -> None:
        """Queue all requests and all answers, in `after` seconds."""
        for key in self._context.data.requests.keys() | self._context.data.answers.keys():
            self.queue.add(key, after)

    def close(self) -> None:
        """Unsubscribe."""
        self._unsubscribe()

    def _changed(self) -> None:
        for key in self._tracker.take():
            self.queue.add(key)

    async def _handle(self, key: str) -> None:
        data, rights = self._context.data, self._context.rights()
        history = data.requests.history(key)
        try:
            request = read_request(history, rights)
        except ResideError as error:
            self._waiting.end(key)
            self.queue.add(key, after=remaining_s(history, rights))
            answer = await self._answer_map(key, history[-1].by)
            if ERROR not in answer:
                answer.set(ERROR, str(error))
            return
        if request is None:
            await self._forget(key)
            return
        self.queue.add(key, after=remaining_s(history, rights))
        answer = await self._answer_map(key, request.by)
        if RESULT in answer or ERROR in answer:
            return
        if not self._waiting.has_place(key, request.by):
            answer.set(ERROR, f"{MOST_WAITING} requests of {request.by} wait already: stop a command that follows logs")
            return
        await self._context.lease.check()
        if await self._carry_out(request, answer):
            self._waiting.end(key)
        else:
            self._waiting.begin(key, request.by)
            self.queue.add(key, after=LOOK_AGAIN_S)

    async def _carry_out(self, request: OperatorRequest, answer: CoMap) -> bool:
        """Carry out a request and answer it; return False if there is nothing to answer yet."""
        if is_logged(request):
            shown = {name: value for name, value in request.members.items() if isinstance(value, str | list | bool)}
            _log.info("operator request", by=request.by, **{f"request_{name}": value for name, value in shown.items()})
        try:
            result = await self._actions[request.action](request)
        except Exception as error:
            answer.set(ERROR, fault_text(error))
            if not is_expected(error):
                raise
            return True
        if result is None:
            return False
        if result.file is not None:
            answer.set(FILE, answer.group.create_file(result.file).id)
            await self._context.replica.node.flush()
        answer.set(RESULT, dict(result.members))
        return True

    async def _answer_map(self, key: str, reader: str) -> CoMap:
        """Return the map of an answer, which may be empty."""
        found = await self._load(key)
        if found is None:
            node = self._context.replica.node
            group = node.create_group("answer to an operator")
            await group.add_member(AccountId(reader), "reader")
            found = group.create_map()
            self._context.data.answers.set(key, found.id)
            await node.flush()
        return found

    async def _forget(self, key: str) -> None:
        """Delete the answer of a request that was deleted or does not count any more, and then the request."""
        self._waiting.end(key)
        data = self._context.data
        answer = await self._load(key)
        if answer is not None:
            await self._destroy_file(answer.get(FILE))
            answer.destroy()
        if key in data.answers:
            data.answers.delete(key)
        if key in data.requests:
            data.requests.delete(key)

    async def _destroy_file(self, file: object) -> None:
        if isinstance(file, str):
            with suppress(ValueDeleted):
                (await self._context.replica.node.open_file(file)).destroy()

    async def _load(self, key: str) -> CoMap | None:
        target = self._context.data.answers.get(key)
        if not isinstance(target, str):
            return None
        try:
            return await self._context.replica.node.load_map(target)
        except ValueDeleted:
            return None


class Waiting:
    """The requests that wait, with the accounts that made them."""

    def __init__(self) -> None:
        self._accounts: dict[str, str] = {}

    def has_place(self, key: str, account: str) -> bool:
        """Return whether a request waits already, or may wait beside the others of its account."""
        waiting = sum(each == account for each in self._accounts.values())
        return key in self._accounts or waiting < MOST_WAITING

    def begin(self, key: str, account: str) -> None:
        """Note that a request waits."""
        self._accounts[key] = account

    def end(self, key: str) -> None:
        """Note that a request is answered or deleted."""
        self._accounts.pop(key, None)


def is_logged(request: OperatorRequest) -> bool:
    """Return whether a request is logged: all but those that follow logs, which come again and again.

    Who follows the logs of the Sentinel would follow that line.
    """
    return request.action != SHOW_LOGS or SINCE not in request.members
