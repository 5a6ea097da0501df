"""Empty collections are shared by all values of a node: a change of one value does not show in another."""

from __future__ import annotations

from reside.jazz.ids import CoId, SessionId
from reside.jazz.memory.covalue import Core, own
from reside.jazz.sync.known_state import KnownState
from reside.jazz.wire.session import SessionLog


def test_a_change_of_one_value_does_not_show_in_another() -> None:
    changed, other = Core(CoId("co_zA")), Core(CoId("co_zB"))
    changed.expected = expected = own(changed.expected)
    expected["co_zA_session_z"] = 1
    changed.add_dependant(CoId("co_zC"))
    changed.note_change(5)
    assert (changed.expected, changed.dependants, changed.changes_from) == ({"co_zA_session_z": 1}, {"co_zC"}, [5])
    assert (dict(other.expected), set(other.dependants), list(other.changes_from)) == ({}, set(), [])
    assert own(changed.expected) is changed.expected
    changed.forget_connection()
    assert changed.expected is other.expected


def test_the_shared_collections_cannot_be_changed() -> None:
    core, log, known = Core(CoId("co_zA")), SessionLog(SessionId("co_zA_session_z")), KnownState()
    shared = (core.expected, core.deferred, core.rejected, core.secrets, log.checkpoints, known.sent)
    assert not any(hasattr(item, "update") for item in shared)
    assert not hasattr(core.dependants, "add")
