"""Write the reports of stacks to Jazz after each change; runs in the leading Sentinel only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.common.transience import is_transient
from reside.common.workqueue import WorkQueue
from reside.sentinel.backoff import APPLY_BACKOFF
from reside.sentinel.errors import fault_text, judge
from reside.sentinel.objects.identity import stack_of
from reside.sentinel.term.pod_counts import PodCounts
from reside.sentinel.term.reports import Fault, StackState, compose, difference

if TYPE_CHECKING:
    from reside.jazz import CoMap
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.sentinel.term.context import TermContext

ATTEMPTS_BEFORE_REPORT: Final = 3
"""Number of consecutive failed attempts after which a transient error is reported."""


class Reporter:
    """Writes reports during one term."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self.desired: dict[str, DesiredStack] = {}
        """The latest desired stacks that could be read, by name."""
        self.faults: dict[str, Fault] = {}
        self._attempts: dict[str, int] = {}
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
        self.faults.pop(name, None)
        self._attempts.pop(name, None)
        self.touch(name)

    def known(self) -> set[str]:
        """Return the names of the stacks that are desired or have a fault."""
        return {*self.desired, *self.faults}

    def _object_changed(self, key: str, before: K8sObject | None, live: K8sObject | None) -> None:
        labelled = {stack_of(seen) for seen in (before, live) if seen is not None}
        holders = {stack.name for stack in self.desired.values() if key in stack.keys()}  # noqa: SIM118 - no dict
        for name in labelled | holders | {self._context.guard.store.holder(key)}:
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
        return name in self.known() or name in self._context.guard.store.stacks

    async def _write(self, name: str) -> None:
        reports = self._context.data.reports
        if not self._known(name):
            if name in reports:
                reports.delete(name)
            return
        guard = self._context.guard
        report = compose(
            StackState(
                name=name,
                desired=self.desired.get(name),
                stored=guard.store.stacks.get(name),
                fault=self.faults.get(name),
                problems=guard.repairer.problems,
                live=guard.cache.objects,
                pods=await self._pod_counts.of_stack(name),
                pod_problem=guard.pods.problem,
            )
        )
        target = await self._target(reports, name)
        to_set, to_delete = difference(target.as_dict(), report.document())
        target.update(to_set)
        for member in to_delete:
            target.delete(member)

    async def _target(self, reports: CoMap, name: str) -> CoMap:
        """Return the stack's report map; create it at the first report."""
        found = reports.get(name)
        if isinstance(found, str):
            return await self._context.replica.node.load_map(found)
        created = self._context.data.readers.create_map()
        reports.set(name, created.id)
        return created
