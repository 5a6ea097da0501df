"""The decisions of the work queue: coalescing, serial lanes, a limit, growing pauses."""

from __future__ import annotations

from reside.common.backoff import Backoff
from reside.common.lanes import Lanes


def lanes(limit: int = 2) -> Lanes:
    """Lanes named by the part before the slash."""
    return Lanes(lambda key: key.partition("/")[0], limit, Backoff(first=1.0, longest=4.0))


def test_a_waiting_key_is_queued_once() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.add("a/1")
    assert queue.take(0) == "a/1"
    assert queue.take(0) is None


def test_keys_of_one_lane_are_handled_one_after_another_and_others_meanwhile() -> None:
    queue = lanes()
    for key in ("a/1", "a/2", "b/1"):
        queue.add(key)
    assert queue.take(0) == "a/1"
    assert queue.take(0) == "b/1"
    assert queue.take(0) is None
    queue.done("a/1")
    assert queue.take(0) == "a/2"


def test_the_age_of_the_queue_is_that_of_the_key_that_has_been_due_for_the_longest_time() -> None:
    queue = lanes(limit=1)
    assert queue.oldest_s(9.0) == 0.0
    queue.add("a/1", 5.0)
    queue.add("b/1", 20.0)
    assert queue.oldest_s(4.0) == 0.0
    assert queue.oldest_s(9.0) == 4.0
    assert queue.take(9.0) == "a/1"
    assert queue.oldest_s(9.0) == 0.0


def test_no_more_lanes_than_the_limit() -> None:
    queue = lanes(limit=1)
    queue.add("a/1")
    queue.add("b/1")
    assert queue.take(0) == "a/1"
    assert queue.take(0) is None


def test_a_key_added_while_it_is_handled_is_handled_again() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.add("a/1")
    assert queue.take(0) is None
    queue.done("a/1")
    assert queue.take(0) == "a/1"


def test_a_key_delayed_while_it_is_handled_waits_until_it_is_due() -> None:
    """The drift repairer postpones an object that was repaired too often; handling it at once would be a busy loop."""
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.add("a/1", due=5.0)
    queue.done("a/1")
    assert queue.take(0) is None
    assert queue.next_due(0) == 5.0
    assert queue.take(5.0) == "a/1"


def test_a_change_while_a_key_is_handled_does_not_wait_for_a_later_time() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.add("a/1", due=5.0)
    queue.add("a/1")
    queue.done("a/1")
    assert queue.take(0) == "a/1"


def test_a_failed_key_is_delayed_with_growing_pauses_up_to_a_limit() -> None:
    queue = lanes()
    queue.add("a/1")
    now, pauses = 0.0, []
    for _ in range(5):
        assert queue.take(now) == "a/1"
        pauses.append(queue.failed("a/1", now))
        assert queue.take(now) is None
        assert queue.next_due(now) == pauses[-1]
        now += pauses[-1]
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_a_change_does_not_wait_for_the_pause_and_success_forgets_failures() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.failed("a/1", 0)
    queue.add("a/1")
    assert queue.take(0) == "a/1"
    queue.done("a/1")
    queue.add("a/1")
    queue.take(0)
    assert queue.failed("a/1", 0) == 1.0


def test_a_queue_with_retries_only_is_idle() -> None:
    queue = lanes()
    assert queue.idle
    queue.add("a/1")
    assert not queue.idle
    queue.take(0)
    assert not queue.idle
    queue.failed("a/1", 0)
    assert queue.idle
