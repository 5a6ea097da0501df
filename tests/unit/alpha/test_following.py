"""What the leader looks at: the first passes of a term, a few at a time, and the changed members of large maps."""

from __future__ import annotations

from reside.alpha.following import FirstPasses


def test_all_replicas_are_followed_before_the_first_pass() -> None:
    first = FirstPasses([f"co_z{number}" for number in range(100)])
    batches = []
    while batch := first.next_to_follow():
        batches.append(len(batch))
        for co_id in batch:
            first.add(int(co_id.removeprefix("co_z")))
    assert batches == [64, 36]
    assert not first.is_over
    assert first.waits(99)


def test_a_pass_begins_when_another_one_has_ended() -> None:
    first = FirstPasses([])
    for number in (3, 4, 5, 6):
        first.add(number)
    assert first.next_to_pass() == [3, 4]
    assert first.next_to_pass() == []
    assert first.ended(3, succeeded=True)
    assert first.next_to_pass() == [5]
    assert not first.ended(9, succeeded=True)


def test_a_pass_that_fails_delays_no_other_one_and_stays_unfinished() -> None:
    first = FirstPasses([])
    first.add(3)
    first.add(4)
    first.next_to_pass()
    first.add(5)
    assert first.ended(3, succeeded=False)
    assert first.next_to_pass() == [5]
    assert not first.ended(4, succeeded=True)
    assert not first.ended(5, succeeded=True)
    assert first.is_over
    assert first.unfinished == {3}
    assert first.ended(3, succeeded=True)
    assert not first.unfinished
