"""A session is killed as a whole, with processes that start while it is being killed."""

from __future__ import annotations

import os
import subprocess
import sys

from reside.resident.sessions import end_session, session_members

# Every member starts others, six levels deep; then they wait until killed.
FORKS = """
import os, signal
for level in range(6):
    os.fork()
print(flush=True)
signal.pause()
"""


def started(program: str) -> subprocess.Popen[bytes]:
    """Return the leader of a new session after at least one member has reported its start."""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_no_member_runs_when_the_call_returns_even_if_members_were_starting() -> None:
    leader = started(FORKS)  # one of the 64 has started; others are still starting
    end_session(leader.pid)
    assert session_members(leader.pid) == []
    leader.wait()


def test_members_are_killed_after_their_leader_ended() -> None:
    leader = started("import os, signal\nif os.fork(): os._exit(0)\nprint(flush=True)\nsignal.pause()")
    leader.wait()
    assert len(session_members(leader.pid)) == 1
    end_session(leader.pid)
    assert session_members(leader.pid) == []


def test_a_session_that_has_ended_is_no_error() -> None:
    leader = started("print(flush=True)")
    leader.wait()
    end_session(leader.pid)
    assert session_members(os.getsid(0)) != []
