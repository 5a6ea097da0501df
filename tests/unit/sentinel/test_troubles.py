"""What events say about objects is kept for the object that they are about, and no longer than the event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.model.kinds import EVENT
from reside.sentinel.guard import troubles as module
from reside.sentinel.guard.troubles import Troubles

if TYPE_CHECKING:
    import pytest

KEY = "StatefulSet/web"


def live(uid: str = "u") -> dict[str, Any]:
    return {"kind": "StatefulSet", "metadata": {"name": "web", "uid": uid}}


def event(uid: str = "e", message: str = "quota", about: str = "u", name: str = "web", **more: Any) -> dict[str, Any]:
    found = {"kind": "StatefulSet", "name": name, "uid": about}
    return {"metadata": {"uid": uid}, "involvedObject": found, "reason": "FailedCreate", "message": message, **more}


def test_an_event_counts_for_the_object_of_its_uid_until_the_event_is_deleted() -> None:
    troubles, heard = Troubles(), list[str]()
    unlisten = troubles.listen(heard.append)
    troubles.note("ADDED", event())
    troubles.note("MODIFIED", event())
    assert troubles.of(KEY, live()) == "FailedCreate: quota"
    assert troubles.of(KEY, live("another")) is None
    assert heard == [KEY]
    troubles.note("MODIFIED", event("later", "another quota"))
    troubles.note("DELETED", event())
    assert troubles.of(KEY, live()) == "FailedCreate: another quota"
    troubles.note("DELETED", event("later"))
    assert troubles.of(KEY, live()) is None
    assert heard == [KEY] * 3
    unlisten()
    troubles.note("ADDED", event())
    assert len(heard) == 3


def test_a_list_replaces_all_events_and_the_last_one_counts() -> None:
    troubles, heard = Troubles(), list[str]()
    troubles.note("ADDED", event(name="gone"))
    troubles.note("ADDED", event())
    troubles.listen(heard.append)
    late, early = event("b", "late", lastTimestamp="2"), event("a", "early", lastTimestamp="1")
    troubles.replace(EVENT, [late, early, {"reason": "FailedCreate"}])
    assert troubles.of(KEY, live()) == "FailedCreate: late"
    assert sorted(heard) == ["StatefulSet/gone", KEY]


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 10)
    troubles = Troubles()
    for number in range(100):
        troubles.note("ADDED", event(name=f"n{number}"))
    assert len(troubles._troubles) == 10
