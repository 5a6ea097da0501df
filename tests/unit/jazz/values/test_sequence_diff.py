"""The difference of two sequences turns one into the other with as few edits as possible."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reside.jazz.values.diff import Patch, patches

_words = st.lists(st.sampled_from("abc"), max_size=25)


def _apply(old: list[str], found: list[Patch[str]]) -> list[str]:
    result = list(old)
    for patch in reversed(found):
        result[patch.start : patch.stop] = patch.inserted
    return result


def _edits(found: list[Patch[str]]) -> int:
    return sum(patch.stop - patch.start + len(patch.inserted) for patch in found)


def _fewest(old: list[str], new: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(new) + 1)
    for item in old:
        last = 0
        for place, other in enumerate(new):
            last, row[place + 1] = row[place + 1], last + 1 if item == other else max(row[place], row[place + 1])
    return len(old) + len(new) - 2 * row[-1]


@given(_words, _words)
def test_the_patches_turn_the_old_into_the_new_with_the_fewest_edits(old: list[str], new: list[str]) -> None:
    found = patches(old, new)
    assert _apply(old, found) == new
    assert _edits(found) == _fewest(old, new)
    for earlier, later in pairwise(found):
        assert earlier.stop < later.start


@given(_words, _words, st.integers(0, 8))
def test_with_too_many_edits_the_middle_is_replaced_as_a_whole(old: list[str], new: list[str], limit: int) -> None:
    found = patches(old, new, max_edits=limit)
    assert _apply(old, found) == new
    assert len(found) <= 1 or _edits(found) <= limit


def test_common_ends_are_kept() -> None:
    assert patches("hello world", "hello brave world") == [Patch(6, 6, "brave ")]
    assert patches("same", "same") == []
    assert patches("", "new") == [Patch(0, 0, "new")]
    assert patches("old", "") == [Patch(0, 3, "")]
