"""Write the reports of stacks to Jazz after each change; runs in the leading Sentinel only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from reside.common.transience import is_transient
from reside.common.workqueue import WorkQueue
from reside.jazz import ValueDeleted
from reside.sentinel.backoff import APPLY_BACKOFF
from reside.sentinel.errors import fault_text, judge
from reside.sentinel.objects.identity import stack_of
from reside.sentinel.objects.index import KeyIndex
from reside.sentinel.term.pod_counts import PodCounts
from reside.sentinel.term.reports import Fault, StackState, compose, difference, says_more

if TYPE_CHECKING:
    from reside.jazz import CoMap
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.sentinel.term.context import TermContext

ATTEMPTS_BEFORE_REPORT: Final = 3
"""Number of consecutive failed attempts after which a transient error is reported."""
REPLACE_AFTER: Final = 12
"""Number of changes of a report after which it gets a new map."""
QUIET_S: Final = 60.0
"""Pause between two changes of a report that differ from the ones before in times only."""
_EARLIER: Final = 4
"""The last edits of a stack's entry in `reports` whose maps are deleted, unless they were."""


class Reporter:
    """Writes reports during one term."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self.desired: dict[str, DesiredStack] = {}
        """The latest desired stacks that could be read, by name."""
        self.faults: dict[str, Fault] = {}
        self._holders = KeyIndex()
        self._attempts: dict[str, int] = {}
        self._written: dict[str, float] = {}
        self.queue = WorkQueue("report", self._write, workers=1, backoff=APPLY_BACKOFF, judge=judge)
        guard = context.guard
        self._pod_counts = PodCounts(guard)
        self._unlisten = (
            guard.cache.listen(self._object_changed),
            guard.pods.listen(self._pods_changed),
            guard.repairer.listen(self._problem_changed),
        )

    def close(self) -> None:
        """Unsubscribe."""
        for unlisten in self._unlisten:
            unlisten()

    def touch(self, name: str) -> None:
        """Queue the report of a stack."""
        self.queue.add(name)

    def set_desired(self, stack: DesiredStack) -> None:
        """Note a desired stack that was read."""
        self.desired[stack.name] = stack
        self._holders.put(stack.name, stack.keys())
        self.touch(stack.name)

    def fail(self, name: str, error: Exception) -> None:
        """Report that a stack can't be applied; report a transient error only after several attempts."""
        attempts = self._attempts[name] = self._attempts.get(name, 0) + 1
        if is_transient(error) and attempts < ATTEMPTS_BEFORE_REPORT:
            return
        failed = getattr(error, "object", None)
        self.faults[name] = Fault(fault_text(error), failed if isinstance(failed, str) else None)
        self.touch(name)

    def succeed(self, name: str) -> None:
        """Note that a stack is applied."""
        self.faults.pop(name, None)
        self._attempts.pop(name, None)
        self.touch(name)

    def remove(self, name: str) -> None:
        """Note that a stack was removed."""
        self.desired.pop(name, None)
        self._holders.put(name, ())
        self.faults.pop(name, None)
        self._attempts.pop(name, None)
        self.touch(name)

    def known(self) -> set[str]:
        """Return the names of the stacks that are desired or have a fault."""
        return {*self.desired, *self.faults}

    def _object_changed(self, key: str, before: K8sObject | None, live: K8sObject | None) -> None:
        labelled = {stack_of(seen) for seen in (before, live) if seen is not None}
        for name in labelled | self._holders.names(key) | {self._context.guard.store.holder(key)}:
            if name is not None and self._known(name):
                self.touch(name)

    def _pods_changed(self, stack: str) -> None:
        if self._known(stack):
            self.touch(stack)

    def _problem_changed(self, key: str) -> None:
        name = self._context.guard.store.holder(key)
        if name is not None:
            self.touch(name)

    def _known(self, name: str) -> bool:
        return name in self.desired or name in self.faults or name in self._context.guard.store.stacks

    async def _write(self, name: str) -> None:
        reports = self._context.data.reports
        if not self._known(name):
            self._written.pop(name, None)
            if name in reports:
                reports.delete(name)
                await self._destroy_earlier(name)
            return
        document = compose(await self._state(name)).document()
        target = await self._load(reports.get(name))
        if target is None:
            reports.set(name, self._context.data.readers.create_map(document).id)
            await self._destroy_earlier(name)
            return
        to_set, to_delete = difference(target.as_dict(), document)
        if not to_set and not to_delete:
            return
        pause = self._pause_s(name, target, to_set, to_delete)
        if pause:
            self.queue.add(name, after=pause)
            return
        self._written[name] = time.monotonic()
        if target.transaction_count >= REPLACE_AFTER:
            reports.set(name, self._context.data.readers.create_map(document).id)
            await self._destroy_earlier(name)
            return
        target.update(to_set)
        for member in to_delete:
            target.delete(member)

    async def _state(self, name: str) -> StackState:
        """Return what a stack's report is composed from, without the objects of other stacks."""
        guard, stored = self._context.guard, self._context.guard.store.stacks.get(name)
        pods = await self._pod_counts.of_stack(name)
        held = frozenset() if stored is None else stored.keys()
        keys = self._holders.keys(name) | held | guard.cache.of_stack(name) | pods.keys()
        return StackState(
            name=name,
            desired=self.desired.get(name),
            stored=stored,
            fault=self.faults.get(name),
            problems=guard.repairer.problems,
            live={key: live for key in keys if (live := guard.cache.get(key)) is not None},
            pods=pods,
            pod_problem=guard.pods.problem,
        )

    def _pause_s(self, name: str, target: CoMap, to_set: dict[str, Any], to_delete: list[str]) -> float:
        """Return for how long a change of times alone waits for others; 0 if the change is written now."""
        if to_delete or any(says_more(target.get(member), value) for member, value in to_set.items()):
            return 0.0
        return max(0.0, self._written.get(name, -QUIET_S) + QUIET_S - time.monotonic())

    async def _load(self, report: object) -> CoMap | None:
        """Return a report map; None if there is none yet, or the one that is named was deleted."""
        if not isinstance(report, str):
            return None
        try:
            return await self._context.replica.node.load_map(report)
        except ValueDeleted:
            return None

    async def _destroy_earlier(self, name: str) -> None:
        """Delete the report maps of a stack that `reports` does not name any more; the sync server erases them.

        All that was ever written to a map stays in its log. So a map is replaced after `REPLACE_AFTER` changes. Of a
        process that died between the two writes, the next replacement deletes what is left.
        """
        reports = self._context.data.reports
        earlier = {edit.value for edit in reports.history(name)[-_EARLIER:]} - {reports.get(name)}
        for co_id in earlier:
            found = await self._load(co_id)
            if found is not None:
                found.destroy()
