"""Write the reports of stacks to Jazz after each change; runs in the leading Sentinel only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from reside.common.transience import is_transient
from reside.common.workqueue import WorkQueue
from reside.sentinel.backoff import APPLY_BACKOFF
from reside.sentinel.errors import fault_text, judge
from reside.sentinel.objects.identity import stack_of
from reside.sentinel.objects.index import KeyIndex
from reside.sentinel.objects.packed import packed
from reside.sentinel.term.live_maps import REPLACE_AFTER, LiveMaps, change, lately_named, load, named
from reside.sentinel.term.pod_counts import PodCounts
from reside.sentinel.term.progress import Progress
from reside.sentinel.term.reports import (
    LIVE_S,
    Fault,
    StackState,
    compose,
    difference,
    differs_in_pace_only,
    shows_live,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reside.model.stacks import DesiredStack, K8sObject
    from reside.sentinel.term.context import TermContext

ATTEMPTS_BEFORE_REPORT: Final = 3
"""Number of consecutive failed attempts after which a transient error is reported."""
_RENEWAL_S: Final = 0.02
"""Seconds between the reports of two stacks that are looked at again."""
SEEN_S: Final = 0.1
"""Pause in seconds before what a watch shows is reported: a change is mostly shown by several events."""
BEGUN_S: Final = 0.5
"""Pause in seconds before it is reported that a stack is to be changed: most operations end before, and their results
are reported at once."""
_EARLIER: Final = 4
"""The last edits of a stack's entry in `reports` whose maps are deleted, unless they were."""


class Reporter:
    """Writes reports during one term."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self.desired: dict[str, DesiredStack] = {}
        """The latest desired stacks that could be read, by name."""
        self._advice: dict[str, tuple[str, ...]] = {}
        """Stack → its violations of advisory rules of the policy."""
        self.faults: dict[str, Fault] = {}
        self._undeclared: list[Callable[[str], None]] = []
        self._holders = KeyIndex(self._note_undeclared)
        self._attempts: dict[str, int] = {}
        self._node = context.replica.node
        self._live = LiveMaps(self._node, context.data)
        self._paced_at: dict[str, float] = {}
        """Stack → when drift and states were written last without another change."""
        self.queue = WorkQueue(
            "report", self._write, workers=1, backoff=APPLY_BACKOFF, judge=judge, group=context.declarer
        )
        guard = context.guard
        self._pod_counts = PodCounts(guard)
        self.progress = Progress(guard.cache, self.touch)
        self._unlisten = (
            guard.cache.listen(self._object_changed),
            guard.pods.listen(self._pods_changed),
            guard.repairer.listen(self._problem_changed),
            guard.troubles.listen(self._problem_changed),
        )

    def close(self) -> None:
        """Unsubscribe."""
        self.progress.close()
        for unlisten in self._unlisten:
            unlisten()

    def touch(self, name: str, pause: float = 0.0) -> None:
        """Queue the report of a stack, due after a pause in seconds, unless it is due before."""
        self.queue.add(name, after=pause)

    async def renew(self) -> None:
        """Look at all reports again after each new connection to Jazz, until cancelled.

        A server that was restored from a backup has lost what was written since. The node has evicted most reports, so
        it can't give them back by itself.
        """
        while True:
            await self._node.until_reconnected()
            self._live.distrust()
            names = self.known() | self._context.guard.store.stacks.keys()
            for number, name in enumerate(sorted(names)):
                self.queue.add(name, after=number * _RENEWAL_S)

    def set_desired(self, stack: DesiredStack, advice: tuple[str, ...] = ()) -> None:
        """Note a desired stack that was read, with its violations of advisory rules."""
        self._keep(stack)
        self._advice[stack.name] = advice
        self._holders.put(stack.name, stack.keys())
        self.touch(stack.name, BEGUN_S)

    def fail(self, name: str, error: Exception) -> bool:
        """Report that a stack can't be applied; report a transient error only after several attempts.

        Returns:
            whether it is reported.
        """
        attempts = self._attempts[name] = self._attempts.get(name, 0) + 1
        if is_transient(error) and attempts < ATTEMPTS_BEFORE_REPORT:
            return False
        failed = getattr(error, "object", None)
        self.faults[name] = Fault(fault_text(error), failed if isinstance(failed, str) else None)
        self.touch(name)
        return True

    def clear_fault(self, name: str) -> None:
        """Note that the engine has applied a stack, which is not stored yet.

        Until then its report has the revision before. So no report has both the new revision and an earlier fault.
        """
        self.faults.pop(name, None)

    def succeed(self, name: str) -> None:
        """Note that a stack is applied."""
        self.faults.pop(name, None)
        self._attempts.pop(name, None)
        if name in self.desired:
            self._keep(self.desired[name])
        self.touch(name)

    def remove(self, name: str) -> None:
        """Note that a stack was removed."""
        self.desired.pop(name, None)
        self._advice.pop(name, None)
        self._holders.put(name, ())
        self.faults.pop(name, None)
        self._attempts.pop(name, None)
        self.touch(name)

    def known(self) -> set[str]:
        """Return the names of the stacks that are desired or have a fault."""
        return {*self.desired, *self.faults}

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with each object that no desired stack contains any more."""
        self._undeclared.append(listener)

    def is_declared(self, key: str) -> bool:
        """Return whether a desired stack contains an object."""
        return bool(self._holders.names(key))

    def declared(self, name: str) -> frozenset[str]:
        """Return `Kind/name` of the objects of a desired stack."""
        return self._holders.keys(name)

    def _keep(self, stack: DesiredStack) -> None:
        """Keep a desired stack with packed objects; with those of the stored stack if they are equal."""
        stored, objects = self._context.guard.store.stacks.get(stack.name), packed(stack.objects)
        if stored is not None and stored.objects == objects:
            objects = packed(stored.objects)
        self.desired[stack.name] = stack.holding(objects)

    def _note_undeclared(self, key: str) -> None:
        for listener in self._undeclared:
            listener(key)

    def _object_changed(self, key: str, before: K8sObject | None, live: K8sObject | None) -> None:
        labelled = {stack_of(seen) for seen in (before, live) if seen is not None}
        for name in labelled | self._holders.names(key) | {self._context.guard.store.holder(key)}:
            if name is not None and self._known(name):
                self.touch(name, BEGUN_S if self.progress.runs(name) else SEEN_S)

    def _pods_changed(self, stack: str) -> None:
        if self._known(stack):
            self.touch(stack, SEEN_S)

    def _problem_changed(self, key: str) -> None:
        name = self._context.guard.store.holder(key)
        if name is not None:
            self.touch(name)

    def _known(self, name: str) -> bool:
        return name in self.desired or name in self.faults or name in self._context.guard.store.stacks

    async def _write(self, name: str) -> None:
        reports = self._context.data.reports
        if not self._known(name):
            self._live.forget(name)
            self._paced_at.pop(name, None)
            if name in reports:
                reports.delete(name)
                await self._destroy_earlier(name)
            return
        report = compose(await self._state(name))
        target = await load(self._node, reports.get(name))
        present = {} if target is None else target.as_dict()
        live = await self._live.write(name, report, present)
        if live.late is not None:
            self.queue.add(name, after=live.late)
        document = self._paced(name, present, report.document()) | live.members
        to_set, to_delete = difference(present, document)
        if not to_set and not to_delete:
            return
        if target is None or target.transaction_count >= REPLACE_AFTER or shows_live(present):
            target = self._context.data.readers.create_map(document)
            target.release()
            reports.set(name, target.id)
            await self._destroy_earlier(name)
            return
        before = named(target)
        change(target, to_set, to_delete)
        if not before <= named(target):
            await self._destroy_earlier(name)

    def _paced(self, name: str, present: Mapping[str, Any], document: dict[str, Any]) -> dict[str, Any]:
        """Return a report's members with drift and states as it has them, if they were written in the last `LIVE_S`."""
        fast = [key for key, value in document.items() if differs_in_pace_only(present.get(key), value)]
        if not fast:
            return document
        now = time.monotonic()
        late = self._paced_at.get(name, now - LIVE_S) + LIVE_S - now
        if late <= 0:
            self._paced_at[name] = now
            return document
        self.queue.add(name, after=late)
        return document | {key: present[key] for key in fast}

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
            drift=guard.repairer.findings_of,
            reverted=guard.repairer.reverted_of,
            advice=self._advice.get(name, ()),
            progress=self.progress.of(name),
            trouble=guard.troubles.of,
        )

    async def _destroy_earlier(self, name: str) -> None:
        """Delete the maps of a stack's report that it does not consist of any more; the sync server erases them.

        All that was ever written to a map stays in its log. So a map is replaced after `REPLACE_AFTER` changes. Of a
        process that died between the two writes, the next replacement deletes what is left.
        """
        reports = self._context.data.reports
        present = await load(self._node, reports.get(name))
        maps = [await load(self._node, co_id) for co_id in {edit.value for edit in reports.history(name)[-_EARLIER:]}]
        found = [report for report in maps if report is not None]
        for co_id in {each for report in found for each in lately_named(report)} - named(present):
            live = await load(self._node, co_id)
            if live is not None:
                live.destroy()
        for report in found:
            if report is not present:
                report.destroy()
