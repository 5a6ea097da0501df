"""The validated states of a node's groups, computed on demand and incrementally.

A validation pass over a group is resumed where it ended. It is restarted if a transaction arrived that precedes a
validated one, or if a parent changed at a time that was already validated. So a group of n transactions that arrive one
by one takes n steps, and `Core.changed_since` returns from which time roles may differ.

A group's state depends on its parents' states, which are validated during the pass. Chains of parents may have any
length: where the recursion gets too deep for Python, the pass is aborted, the parent is validated first, and the pass
is restarted. So the result does not depend on what was validated before. There is one exception: in a cycle of more
than 64 groups, which only an admin of all of them can create, one of the extensions is ignored, and which one depends
on where the pass began.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core, own
from reside.jazz.rules.group_state import NEVER, GroupState
from reside.jazz.rules.permissions import GroupValidator
from reside.jazz.rules.validation import GroupValidation
from reside.jazz.wire.session import Transaction

_MAX_NESTING: Final = 64
"""Maximum depth of nested passes; each takes about ten frames of Python's stack."""


class Values(Protocol):
    """The values among which a group finds its parents; implemented by `Store`."""

    def core(self, co_id: str) -> Core:
        """Return the value of an id."""

    def link(self, group: str, dependant: CoId) -> None:
        """Note that a value's content depends on a group."""


class _TooDeepError(Exception):
    """A parent must be validated before the groups that wait for it.

    Attributes:
        parent: the parent.
        waiting: ids of the groups that wait for it.
    """

    def __init__(self, parent: Core, waiting: Iterable[Core]) -> None:
        super().__init__(parent.co_id)
        self.parent = parent
        self.waiting = {core.co_id for core in waiting}


class GroupStates:
    """Validates the groups of a store.

    Args:
        store: the values.
    """

    def __init__(self, store: Values) -> None:
        self._store = store
        self._validating: list[Core] = []
        self._tainted: set[CoId] = set()
        self._circular: set[CoId] = set()

    def state(self, core: Core) -> GroupState | str:
        """Return the validated state of a group or account, or why there is none (`missing`: it is not loaded)."""
        if core.header is None:
            return "missing"
        if core.header.initial_admin is None:
            return "not a group"
        if core.partial_state is not None:
            self._taint(core)
            return core.partial_state
        if core.group_state is not None:
            return core.group_state
        return self._validate_as_parent(core) if self._validating else self._validate_root(core)

    def _validate_as_parent(self, core: Core) -> GroupState | str:
        if len(self._validating) < _MAX_NESTING:
            core.group_state = self._validate(core)
            return core.group_state
        if core.co_id not in self._circular:
            raise _TooDeepError(core, self._validating)
        return f"in a cycle of more than {_MAX_NESTING} groups"

    def _validate_root(self, core: Core) -> GroupState:
        first, waiting = [core], set[CoId]()
        while True:
            try:
                state = first[-1].group_state = self._validate(first[-1])
            except _TooDeepError as deep:
                waiting |= deep.waiting
                if deep.parent.co_id in waiting:
                    self._circular.add(deep.parent.co_id)
                else:
                    first.append(deep.parent)
                continue
            first.pop()
            if not first:
                self._circular.clear()
                return state

    def _validate(self, core: Core) -> GroupState:
        self._validating.append(core)
        prior, parents_changed_from = core.validation, NEVER
        revisions_before = {} if prior is None else dict(prior.parent_revisions)
        try:
            can_resume = prior is not None and prior.validator.can_resume(core.transactions[prior.seen :])
            validation = prior if can_resume else None
            if validation is not None:
                core.partial_state = validation.validator.state
                parents_changed_from = self._parents_changed_from(validation)
                if parents_changed_from <= validation.validator.last_time:
                    validation = None
            if validation is None:
                validation = self._begin(core)
            state = core.partial_state = validation.validator.state
            state.forget_roles(parents_changed_from)
            changed_from = validation.validator.resume(core.transactions[validation.seen :])
        except _TooDeepError:
            if prior is not None:
                core.validation = None  # it may have been resumed in part
                self._forget_secrets(core)
            raise
        finally:
            core.partial_state = None
            self._validating.pop()
        validation.seen = len(core.transactions)
        core.validation = validation
        if validation is not prior:
            before = None if prior is None else (prior.validator.state.valid(), revisions_before)
            self._note_new_validation(core, before, validation)
        elif changed_from is not None or parents_changed_from < NEVER:
            core.note_change(min(parents_changed_from, NEVER if changed_from is None else changed_from))
        self._drop_tainted(core)
        return state

    def _begin(self, core: Core) -> GroupValidation:
        revisions: dict[str, int] = {}
        header = core.header
        initial_admin = (header and header.initial_admin) or ""

        def find_parent(parent_id: str) -> GroupState | str:
            self._store.link(parent_id, core.co_id)
            parent = self._store.core(parent_id)
            found = self.state(parent)
            revisions.setdefault(parent_id, parent.revision)
            return "not a group" if isinstance(found, GroupState) and found.agent_id is not None else found

        is_account = header is not None and header.is_account
        state = GroupState(core.co_id, initial_admin if is_account else None, find_parent)
        return GroupValidation(GroupValidator(state, initial_admin), parent_revisions=revisions)

    def _parents_changed_from(self, validation: GroupValidation) -> int:
        """Return the earliest time at which a role in a parent may differ from what the pass used."""
        since = NEVER
        for parent_id, revision in validation.parent_revisions.items():
            parent = self._store.core(parent_id)
            self.state(parent)
            since = min(since, parent.changed_since(revision))
            validation.parent_revisions[parent_id] = parent.revision
        return since

    def _note_new_validation(
        self, core: Core, before: tuple[list[Transaction], dict[str, int]] | None, validation: GroupValidation
    ) -> None:
        valid = validation.validator.state.valid()
        if before != (valid, validation.parent_revisions):
            core.note_change(0)
        if before is not None and not set(map(id, before[0])) <= set(map(id, valid)):
            self._forget_secrets(core)

    def _forget_secrets(self, core: Core) -> None:
        """Clear the secrets of a group and of all that extend it: they may depend on content that became invalid."""
        seen: set[CoId] = set()
        queue = [core]
        while queue:
            current = queue.pop()
            if current.co_id not in seen and current.header is not None and current.header.is_group:
                seen.add(current.co_id)
                own(current.secrets).clear()
                current.forgotten += 1
                queue.extend(self._store.core(dependant) for dependant in current.dependants)

    def _taint(self, unfinished: Core) -> None:
        """Note the groups that were validated with an unfinished state of another; they are validated again later."""
        place = self._validating.index(unfinished)
        self._tainted.update(core.co_id for core in self._validating[place + 1 :])

    def _drop_tainted(self, core: Core) -> None:
        if self._validating:
            return
        for tainted in self._tainted - {core.co_id}:
            self._store.core(tainted).group_state = self._store.core(tainted).validation = None
        self._tainted.clear()
