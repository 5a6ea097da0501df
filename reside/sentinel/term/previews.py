"""Preview candidates: what an apply would change, and policy violations, before an operator approves.

A candidate is checked like a desired stack, for the account that wrote its entry. A refusal is a result, too. Each
candidate has one result; only after a transient error (no engine, no cluster) is the preview retried.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reside.common.tracing import step
from reside.common.transience import is_expected, is_transient
from reside.model.errors import NotAllowed, ResideError
from reside.model.sentinel_data import CANDIDATE
from reside.model.stacks import StackPreview
from reside.sentinel.contract.desired_stacks import check_rights, effective_edit
from reside.sentinel.engine import EngineError, StackSpec
from reside.sentinel.errors import fault_text
from reside.sentinel.term.secret_values import resolve_for_preview

if TYPE_CHECKING:
    from reside.jazz import Edit
    from reside.model.stacks import DesiredStack
    from reside.sentinel.term.context import TermContext


class Previewer:
    """Writes the results of previews in one term."""

    def __init__(self, context: TermContext) -> None:
        self._context = context

    async def handle(self, key: str) -> None:
        """Write the result of a candidate, or delete the result of a deleted candidate.

        Raises:
            NotReady, EngineUnavailable: a retry may help.
        """
        results = self._context.data.results
        entry = effective_edit(self._context.data.previews.history(key), None, self._context.rights())
        if entry is None or entry.deleted:
            if key in results:
                results.delete(key)
            return
        found = results.get(key)
        if isinstance(found, dict) and found.get(CANDIDATE) == (entry.value if isinstance(entry.value, str) else None):
            return
        try:
            preview = await self._preview(entry)
        except Exception as error:
            if not is_expected(error):
                self._write(key, StackPreview("", "", error=fault_text(error)), entry)
            raise
        self._write(key, preview, entry)

    def _write(self, key: str, preview: StackPreview, entry: Edit) -> None:
        candidate = entry.value if isinstance(entry.value, str) else None
        self._context.data.results.set(key, {**preview.document(), CANDIDATE: candidate})

    async def _preview(self, entry: Edit) -> StackPreview:
        try:
            _, stack = await self._context.read(None, entry)
        except ResideError as error:
            if is_transient(error):
                raise
            return StackPreview("", "", error=str(error))
        result = StackPreview(stack.name, stack.revision, violations=self._context.violations(stack))
        try:
            check_rights(stack, self._context.rights())
            self._context.check_filled(stack)
            self._check_owner(stack)
            if result.violations:
                return result
            return await self._changes(stack, result)
        except (ResideError, EngineError) as error:
            if is_transient(error):
                raise
            return replace(result, error=str(error))

    async def _changes(self, stack: DesiredStack, result: StackPreview) -> StackPreview:
        objects = await resolve_for_preview(self._context.replica.node, self._context.guard, stack)
        await self._context.check_adoption(stack, objects)
        async with self._context.stack_lock(stack.name):
            with step("preview a stack", stack.traceparent, {"reside.stack": stack.name}):
                done = await self._context.engine.preview(StackSpec(stack.name, objects))
        return replace(result, changes=done.changes)

    def _check_owner(self, stack: DesiredStack) -> None:
        owner = self._context.owner(stack.name)
        if owner not in (None, stack.owner):
            raise NotAllowed(f"stack {stack.name} belongs to {owner}: use another name")
