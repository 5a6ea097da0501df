"""Tell drift: each repair by an event about the object, fights and fields of others by the report of the stack."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import Counter, Gauge

from reside.model.stacks import object_key
from reside.sentinel.guard.drift import additions, is_strict, to_take_over
from reside.sentinel.guard.fights import Fights, text
from reside.sentinel.guard.repair_events import RepairEvents
from reside.sentinel.guard.reverts import Reverts
from reside.sentinel.objects.differences import changes, reverted, summary
from reside.sentinel.objects.identity import split_key
from reside.sentinel.objects.managed_fields import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.drift import Action
    from reside.sentinel.guard.repair_events import EventApi

_log = structlog.get_logger(__name__)

REPAIRS = Counter(
    "reside_sentinel_repairs_total",
    "Objects that were changed back; what the engine itself wrote does not count.",
    ["kind", "action"],
)
FIGHTS = Gauge(
    "reside_sentinel_fights",
    "Objects of which another manager changes a field back again and again.",
)
CALM_S: Final = 120.0
"""Seconds without a repair of a field after which a fight about it has ended."""
_MOST: Final = 8
"""Number of foreign fields of an object that are reported."""


class Findings:
    """The findings of one guard.

    Args:
        api: writes events.
        changed: called with the key of an object when its fights, or its reverted changes, have changed.
    """

    def __init__(self, api: EventApi, changed: Callable[[str], None]) -> None:
        self.events = RepairEvents(api)
        self._changed = changed
        self._fights = Fights(CALM_S)
        self._reverts = Reverts()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """One timer for each object, however often it is repaired."""

    def repaired(
        self, desired: K8sObject, stack: str, action: Action, before: K8sObject | None, live: K8sObject
    ) -> None:
        """Tell a repair; not if only the managers of fields have changed.

        Args:
            desired: the desired object.
            stack: the stack that contains it.
            action: what was done.
            before: the live object before, with the `managedFields` of others; None: there was none.
            live: the live object now.
        """
        key = object_key(desired)
        taken = [] if before is None else to_take_over(desired, before)
        found = [] if before is None else reverted(changes(before, live), desired, taken)
        if before is not None and not found:
            return
        REPAIRS.labels(split_key(key)[0], action).inc()
        if before is None:
            _log.info("repaired", object=key, of=stack, action=action)
            self.events.tell(live, "Restored", "The object did not exist, and was created as its stack declares it.")
            return
        culprits = [culprit for change in found for culprit in change.culprits()]
        names = sorted({shortened(culprit.manager) for culprit in culprits})
        _log.info("repaired", object=key, of=stack, action=action, fields=len(found), managers=names)
        self.events.tell(live, "Reverted", f"Changed back, as its stack declares it: {summary(found)}")
        now = asyncio.get_running_loop().time()
        is_new = self._reverts.note(key, culprits, now)
        begun = self._fights.note(key, culprits, now)
        for fight in begun:
            _log.warning("fight", object=key, of=stack, manager=shortened(fight.manager), field=str(fight))
            self.events.tell(live, "Fight", text(fight))
        self._await_end(key)
        if begun or is_new:
            self._announce(key)

    def reverted(self, key: str) -> tuple[str, ...]:
        """Return what others have changed in an object lately, and what was changed back."""
        return self._reverts.texts(key)

    def fights(self, key: str) -> tuple[str, ...]:
        """Return what is to be reported about an object that is nobody else's."""
        return tuple(self._fights.texts(key))

    def texts(self, key: str, desired: K8sObject, live: K8sObject) -> tuple[str, ...]:
        """Return what is to be reported about an object."""
        found = [str(each) for each in additions(desired, live)]
        shown = found[:_MOST] + ([f"{len(found) - _MOST} more fields"] if len(found) > _MOST else [])
        end = "is to be removed" if is_strict(desired) else "was added, and stays"
        return (*self.fights(key), *(f"{each} {end}" for each in shown))

    def forget(self, key: str) -> None:
        """Forget an object that is in no stack any more."""
        self._fights.forget(key)
        self._reverts.forget(key)
        self._await_end(key)
        FIGHTS.set(self._fights.count())

    async def run(self) -> None:
        """Write events until cancelled."""
        await self.events.run()

    def _await_end(self, key: str) -> None:
        """Look again when a fight about an object would end, or a change of it is forgotten."""
        if key in self._timers:
            self._timers.pop(key).cancel()
        ends = [end for end in (self._fights.next_end(key), self._reverts.next_end(key)) if end is not None]
        if ends:
            self._timers[key] = asyncio.get_running_loop().call_at(min(ends), self._expire, key)

    def _expire(self, key: str) -> None:
        now = asyncio.get_running_loop().time()
        has_ended = self._fights.expire(key, now)
        if has_ended:
            _log.info("fight has ended", object=key)
        has_changed = self._reverts.expire(key, now) or has_ended
        self._await_end(key)
        if has_changed:
            self._announce(key)

    def _announce(self, key: str) -> None:
        FIGHTS.set(self._fights.count())
        self._changed(key)
