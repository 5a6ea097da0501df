"""Preview candidates: what an apply would change, and policy violations, before an operator approves.

A candidate is checked like a desired stack, for the account that wrote its entry. A refusal is a result, too. Each
candidate has one result; only after a transient error (no engine, no cluster) is the preview retried.

A result names the live versions that it was computed from. If one of them changes, the result is deleted and made
again, so that a result that exists is current. A candidate that nobody has withdrawn expires.

Others than the author may read `previewResults`. So the values that would change are in a map of their own, which only
the author of the candidate can read.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reside.common.tracing import step
from reside.common.transience import is_expected, is_transient
from reside.jazz import AccountId
from reside.model.errors import ResideError
from reside.model.previews import Advice, StackPreview
from reside.model.sentinel_data import CANDIDATE, VALUES
from reside.sentinel.contract.data import destroy_map
from reside.sentinel.contract.desired_stacks import check_rights, effective_edit
from reside.sentinel.engine import EngineError, StackSpec
from reside.sentinel.errors import fault_text
from reside.sentinel.objects.index import KeyIndex
from reside.sentinel.objects.versions import live_version
from reside.sentinel.objects.yields import to_apply
from reside.sentinel.term.metrics import phase
from reside.sentinel.term.preview_values import shown_changes
from reside.sentinel.term.secret_values import resolve_for_preview

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import Edit, Group
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.sentinel.term.context import TermContext

EXPIRY_S: Final = 24 * 3600.0
"""Seconds after which a candidate expires: its entry and its result are deleted."""
_RENEWAL_S: Final = 1.0
"""Seconds from the change of a live object to the next preview. Meanwhile there is no result."""


class Previewer:
    """Writes the results of previews in one term.

    Args:
        context: the parts of the term.
        lanes: number of previews that the engine makes in parallel. Candidates are read outside of these lanes.
        later: called with a key that is to be handled again, and in how many seconds.
    """

    def __init__(self, context: TermContext, lanes: int, later: Callable[[str, float], None]) -> None:
        self._context = context
        self._lanes = asyncio.Semaphore(lanes)
        self._later = later
        self._versions: dict[str, dict[str, str | None]] = {}
        """Key → the live versions that its result names."""
        self._objects = KeyIndex()
        """Which results name an object."""
        self._groups: dict[str, Group] = {}
        """Author → the group that owns the values of its candidates."""
        self._unlisten = context.guard.cache.listen(self._object_changed)

    def close(self) -> None:
        """Unsubscribe."""
        self._unlisten()

    async def handle(self, key: str) -> None:
        """Write the result of a candidate, or delete the result of a deleted candidate.

        Raises:
            NotReady, EngineUnavailable: a retry may help.
        """
        entry = effective_edit(self._context.data.previews.history(key), None, self._context.rights())
        if entry is None or entry.deleted:
            await self._forget(key)
            return
        if self._context.rights().now_ms - entry.at >= EXPIRY_S * 1000:
            await self._forget(key)
            if key in self._context.data.previews:
                self._context.data.previews.delete(key)
            return
        if self._has_result(key, entry):
            if self._moved(key):
                await self._forget(key)
                self._later(key, _RENEWAL_S)
            return
        try:
            preview = await self._preview(entry)
        except Exception as error:
            if not is_expected(error):
                await self._write(key, StackPreview("", "", error=fault_text(error)), entry)
            raise
        await self._write(key, preview, entry)

    def _has_result(self, key: str, entry: Edit) -> bool:
        """Return whether there is a result of this candidate, and follow the objects that it names."""
        found = self._context.data.results.get(key)
        if not isinstance(found, dict) or found.get(CANDIDATE) != _candidate(entry):
            return False
        self._follow(key, StackPreview.parse(found).live_versions)
        return True

    def _follow(self, key: str, versions: dict[str, str | None]) -> None:
        """Make the preview of a key again when one of these objects has another version."""
        self._versions[key] = versions
        self._objects.put(key, versions)

    def _moved(self, key: str) -> bool:
        cache = self._context.guard.cache
        return any(
            cache.is_listed(name) and live_version(cache.get(name)) != version
            for name, version in self._versions.get(key, {}).items()
        )

    def _object_changed(self, name: str, _before: K8sObject | None, _live: K8sObject | None) -> None:
        for key in self._objects.names(name):
            if self._moved(key):
                self._later(key, 0.0)

    async def _forget(self, key: str) -> None:
        """Delete the result of a key, with its values."""
        self._versions.pop(key, None)
        self._objects.put(key, ())
        results = self._context.data.results
        found = results.get(key)
        if key in results:
            results.delete(key)
        if isinstance(found, dict) and isinstance(found.get(VALUES), str):
            await destroy_map(self._context.replica.node, found[VALUES])

    async def _write(self, key: str, preview: StackPreview, entry: Edit) -> None:
        """Write a result, and before it the values that it names."""
        await self._forget(key)
        values = {change.object: [each.document() for each in change.values] for change in preview.changes}
        values = {name: found for name, found in values.items() if found}
        public = replace(preview, changes=tuple(replace(change, values=()) for change in preview.changes))
        document = {**public.document(), CANDIDATE: _candidate(entry)}
        if values:
            document[VALUES] = (await self._group(entry.by)).create_map(values).id
        self._context.data.results.set(key, document)
        self._follow(key, preview.live_versions)
        if self._moved(key):
            self._later(key, 0.0)

    async def _group(self, author: str) -> Group:
        """Return the group of this term in which only the author of a candidate can read."""
        if author not in self._groups:
            group = self._context.replica.node.create_group("preview values")
            await group.add_member(AccountId(author), "reader")
            self._groups[author] = group
        return self._groups[author]

    async def _preview(self, entry: Edit) -> StackPreview:
        try:
            _, stack = await self._context.read(None, entry)
        except ResideError as error:
            if is_transient(error):
                raise
            return StackPreview("", "", error=str(error))
        found = self._context.review(stack)
        result = StackPreview(
            stack.name,
            stack.revision,
            violations=tuple(str(each) for each in found if each.level == "mandatory"),
            advice=tuple(
                Advice(each.rule, each.object, each.message, each.reason) for each in found if each.level == "advisory"
            ),
        )
        try:
            check_rights(stack, self._context.rights())
            self._context.check_filled(stack)
            self._context.check_owner(stack)
            if result.violations:
                return result
            return await self._changes(stack, result)
        except (ResideError, EngineError) as error:
            if is_transient(error):
                raise
            return replace(result, error=str(error))

    async def _changes(self, stack: DesiredStack, result: StackPreview) -> StackPreview:
        objects = await resolve_for_preview(self._context.replica.node, self._context.guard, stack)
        lock = self._context.stack_lock(stack.name)
        async with AsyncExitStack() as held:
            with phase("preview", "wait"):
                async with lock:
                    pass  # an apply of this stack, which may last, is awaited without a lane
                await held.enter_async_context(self._lanes)
                await held.enter_async_context(lock)
            live = self._live(stack)
            with phase("preview", "check"):
                await self._context.check_adoption(stack, objects)
            with phase("preview", "engine"), step("preview a stack", stack.traceparent, {"reside.stack": stack.name}):
                manifests = to_apply(objects, self._context.guard.cache.get)
                done = await self._context.engine.preview(StackSpec(stack.name, manifests))
        others = {change.object: self._context.guard.cache.get(change.object) for change in done.changes}
        changes = shown_changes(done.changes, manifests, others | live, self._context.guard.api.namespace)
        return replace(result, changes=changes)

    def _live(self, stack: DesiredStack) -> dict[str, K8sObject | None]:
        """Return the live objects that an apply of a stack may change."""
        guard, stored = self._context.guard, self._context.guard.store.stacks.get(stack.name)
        keys = {*stack.keys(), *(stored.held() if stored else ()), *guard.cache.of_stack(stack.name)}
        return {key: guard.cache.get(key) for key in keys}


def _candidate(entry: Edit) -> str | None:
    """Return the id of the map that an entry names; None if it names none."""
    return entry.value if isinstance(entry.value, str) else None
