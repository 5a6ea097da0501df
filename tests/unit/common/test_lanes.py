"""The decisions of the work queue: coalescing, a limit, growing pauses, fresh keys before retries."""

from __future__ import annotations

from reside.common.backoff import Backoff
from reside.common.lanes import Lanes


def lanes(limit: int = 2) -> Lanes:
    return Lanes(limit, Backoff(first=1.0, longest=4.0))


def test_a_waiting_key_is_queued_once() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.add("a/1")
    assert queue.take(0) == "a/1"
    assert queue.take(0) is None


def test_the_age_of_the_queue_is_that_of_the_key_that_has_been_due_for_the_longest_time() -> None:
    queue = lanes(limit=1)
    assert queue.oldest_s(9.0) == 0.0
    queue.add("a/1", 5.0)
    queue.add("b/1", 20.0)
    assert queue.oldest_s(4.0) == 0.0
    assert queue.oldest_s(9.0) == 4.0
    assert queue.take(9.0) == "a/1"
    assert queue.oldest_s(9.0) == 0.0


def test_no_more_keys_are_handled_than_there_are_lanes() -> None:
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


def test_a_key_that_fails_is_retried_before_a_later_time_for_which_it_was_added() -> None:
    """39b18eb: a load request that expires in a day was not retried before."""
    queue = lanes()
    queue.add("a/1")
    assert queue.take(0) == "a/1"
    queue.add("a/1", due=3600.0)
    pause = queue.failed("a/1", 0.0)
    assert queue.next_due(0.0) == pause
    assert queue.take(pause) == "a/1"


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


def test_a_resumed_retry_is_due_at_once_and_its_next_pauses_are_short() -> None:
    lanes = Lanes(2, Backoff(first=1.0, longest=100.0))
    for key in ("a", "b"):
        lanes.add(key)
        lanes.take(0.0)
        for _ in range(6):
            lanes.failed(key, 0.0)
    lanes.resume(["a", "unknown"], 0.0)
    assert lanes.take(0.0) == "a"
    assert lanes.take(0.0) is None
    assert lanes.failed("a", 0.0) == 2.0


def test_a_queue_with_retries_only_is_idle() -> None:
    queue = lanes()
    assert queue.idle
    queue.add("a/1")
    assert not queue.idle
    queue.take(0)
    assert not queue.idle
    queue.failed("a/1", 0)
    assert queue.idle


def test_fresh_keys_go_before_retries() -> None:
    queue = lanes(limit=1)
    queue.add("failing")
    queue.take(0)
    queue.failed("failing", 0)
    queue.add("fresh", 2.0)
    assert queue.take(2.0) == "fresh"
    queue.done("fresh")
    assert queue.take(2.0) == "failing"


def test_urgent_keys_go_first_unless_they_fail() -> None:
    queue = Lanes(1, Backoff(first=1.0, longest=4.0), urgent=lambda key: key == "platform")
    for key in ("a", "b", "platform"):
        queue.add(key)
    assert queue.take(0) == "platform"
    queue.failed("platform", 0)
    assert [queue.take(9.0), queue.done("a"), queue.take(9.0)] == ["a", None, "b"]
    queue.done("b")
    assert queue.take(9.0) == "platform"


def test_retries_never_hold_the_last_lane() -> None:
    queue = lanes(limit=3)
    for key in ("a", "b", "c"):
        queue.add(key)
    for key in [queue.take(0) for _ in range(3)]:
        queue.failed(str(key), 0)
    assert [queue.take(9.0) for _ in range(3)] == ["a", "b", None]
    assert queue.next_due(9.0) is None, "it waits for the end of a handler, not for a time"
    queue.add("fresh", 9.0)
    assert queue.take(9.0) == "fresh"


def test_a_change_makes_a_retry_fresh_even_if_it_is_due_later() -> None:
    queue = lanes()
    queue.add("slow")
    queue.add("failing")
    for key in (queue.take(0), queue.take(0)):
        queue.failed(str(key), 0)
    assert queue.idle
    queue.add("failing", 5.0)
    assert not queue.idle
    assert [queue.take(1.0), queue.take(1.0)] == ["failing", None]


def test_clients_that_failed_together_do_not_retry_together() -> None:
    draws = iter((0.0, 0.5, 1.0))
    queue = Lanes(3, Backoff(first=1.0, longest=4.0, jitter=0.5), lambda: next(draws))
    for key in ("a", "b", "c"):
        queue.add(key)
        queue.take(0)
    assert [queue.failed(key, 0) for key in ("a", "b", "c")] == [1.0, 0.75, 0.5]


def test_a_key_that_is_added_and_fails_for_ever_uses_no_more_memory() -> None:
    queue = Lanes(1, Backoff(first=600.0, longest=600.0))
    for second in range(2000):
        queue.add("failing", second)
        queue.take(second)
        queue.failed("failing", second)
    assert len(queue._times) < 100


def test_a_key_is_found_among_thousands_that_are_not_due() -> None:
    queue = lanes(limit=2)
    for number in range(10_000):
        queue.add(f"later/{number}", 100.0 + number)
    queue.add("now")
    assert queue.take(0) == "now"
    assert queue.take(0) is None
    assert queue.next_due(0) == 100.0


def test_the_wait_for_a_lane_is_measured_from_the_moment_when_a_key_is_due() -> None:
    queue = lanes(limit=1)
    queue.add("a/1", 5.0)
    queue.add("b/1", 6.0)
    assert queue.take(5.5) == "a/1"
    assert queue.waited_s == 0.5
    queue.done("a/1")
    assert queue.take(9.0) == "b/1"
    assert queue.waited_s == 3.0


def test_groups_take_turns() -> None:
    """A thousand keys of one group, fresh ones or retries, delay one of another by one key."""
    queue = Lanes(2000, Backoff(first=1.0, longest=4.0), group=lambda key: key[0])
    for number in range(1000):
        queue.add(f"a/{number}")
    queue.add("b/1")
    queue.add("b/2")
    assert [queue.take(0) for _ in range(5)] == ["a/0", "b/1", "a/1", "b/2", "a/2"]
    for key in ("a/0", "a/1", "a/2", "b/1"):
        queue.failed(key, 0)
    while queue.take(0):
        pass
    assert {queue.take(9.0), queue.take(9.0)} == {"a/0", "b/1"}


def test_a_key_that_is_handled_again_waits_behind_those_of_its_group() -> None:
    queue = Lanes(1, Backoff(first=1.0, longest=4.0), group=lambda key: key[0])
    for key in ("a/1", "a/2", "b/1"):
        queue.add(key)
    taken = []
    for _ in range(4):
        key = queue.take(0)
        assert key is not None
        taken.append(key)
        queue.add(key)
        queue.done(key)
    assert taken == ["a/1", "b/1", "a/2", "b/1"]
