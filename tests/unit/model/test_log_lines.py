"""Which lines of a log a reader who has some gets next, and how large they may be."""

from __future__ import annotations

import pytest
from pydantic_core import to_json

from reside.model.errors import InvalidInput
from reside.model.log_lines import Cursor, end_within, lines_after, parse_cursor
from reside.model.pod_logs import PodLog, has_news, new_text

FIRST = "2026-01-02T03:04:05.000000001Z one\n"
SECOND = "2026-01-02T03:04:05.000000002Z two\n"
AGAIN = "2026-01-02T03:04:05.000000002Z two again\n"
THIRD = "2026-01-02T03:04:06Z three\n"
AT = 1_767_323_045 * 10**9


def test_lines_lose_their_times_and_the_cursor_is_the_last_one() -> None:
    assert lines_after(Cursor(), FIRST + SECOND + AGAIN) == ("one\ntwo\ntwo again\n", Cursor(AT + 2, 2))
    assert lines_after(Cursor(), "") == ("", Cursor())


def test_lines_that_the_reader_has_are_left_out_also_among_those_of_the_same_time() -> None:
    assert lines_after(Cursor(AT + 2, 1), FIRST + SECOND + AGAIN + THIRD) == (
        "two again\nthree\n",
        Cursor(AT + 10**9, 1),
    )
    assert lines_after(Cursor(AT + 2, 2), FIRST + SECOND + AGAIN) == ("", Cursor(AT + 2, 2))


def test_a_log_that_was_replaced_keeps_the_cursor() -> None:
    assert lines_after(Cursor(AT + 10**9, 1), FIRST) == ("", Cursor(AT + 10**9, 1))


def test_a_line_without_an_end_comes_later_and_one_without_a_time_with_the_one_before() -> None:
    half = "2026-01-02T03:04:07.5Z begins"
    text, last = lines_after(Cursor(), THIRD + "no time\n" + half)
    assert (text, last) == ("three\nno time\n", Cursor(AT + 10**9, 1))
    assert lines_after(last, THIRD + "no time\n" + half + " and ends\n")[0] == "begins and ends\n"


def test_times_of_all_zones_are_compared() -> None:
    east, west = "2026-01-02T05:04:05.1+02:00 east\n", "2026-01-01T22:04:05.2-05:00 west\n"
    assert lines_after(Cursor(AT + 10**8, 1), east + west) == ("west\n", Cursor(AT + 2 * 10**8, 1))
    nowhen = "2026-13-02T03:04:05Z no such month\n"
    assert lines_after(Cursor(), nowhen + THIRD) == ("three\n", Cursor(AT + 10**9, 1))


def test_a_cursor_is_a_text_and_names_the_second_from_which_lines_are_read() -> None:
    assert parse_cursor(str(Cursor(AT + 2, 3))) == Cursor(AT + 2, 3)
    assert Cursor(AT + 2, 3).since == "2026-01-02T03:04:05Z"
    assert Cursor().since is None


@pytest.mark.parametrize(
    "text", ["", "1", "1/", "-1/0", "1/2/3", "a/b", "1" * 20 + "/1", "\N{ARABIC-INDIC DIGIT ONE}/1"]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_cursor(text)


@pytest.mark.parametrize("character", ["x", "\x01", "\N{REPLACEMENT CHARACTER}", '"', "é"])
def test_the_end_of_a_text_fits_as_json_and_begins_with_a_whole_line(character: str) -> None:
    line = character * 9 + "\n"
    end = end_within(line * 1000, 2000)
    assert 2000 - 2 * len(to_json(line)) < len(to_json(end)) <= 2000
    assert set(end.splitlines()) == {character * 9} or character == "\x01"
    assert end_within(line, 2000) == line
    assert len(to_json(end_within(character * 5000, 2000))) <= 2000


def test_news_are_lines_and_pods_that_come_and_go() -> None:
    quiet, talking = PodLog(pod="a"), PodLog(pod="a", text="x\n")
    assert not has_news([quiet], {"a"})
    assert has_news([talking], {"a"})
    assert has_news([quiet], set())
    assert has_news([], {"a"})
    assert not has_news([], set())


def test_a_follower_is_told_when_it_has_missed_lines() -> None:
    after = Cursor(AT, 1)
    raw = (FIRST + SECOND).encode()
    assert new_text("a", raw, after, lines=2, size=999).is_cut
    assert not new_text("a", raw, after, lines=3, size=999).is_cut
    assert not new_text("a", raw, Cursor(), lines=2, size=999).is_cut  # it asked for the last two
    cut = new_text("a", raw[-len(raw) + 3 :], after, lines=9, size=len(raw) - 3)
    assert (cut.text, cut.is_cut, cut.cursor) == ("two\n", True, str(Cursor(AT + 2, 1)))


@pytest.mark.parametrize("after", [Cursor(), Cursor(AT, 1)])
def test_a_line_without_its_beginning_is_not_shown_again_and_again(after: Cursor) -> None:
    """It has no time, so no cursor could leave it out: a follower would get it with every read."""
    for end in ("x" * 99 + "\n", "x" * 100):
        quiet = new_text("a", end.encode(), after, lines=9, size=100)
        assert (quiet.text, quiet.is_cut, quiet.cursor) == ("", True, str(after))
    more = new_text("a", ("x" * 99 + "\n" + THIRD).encode(), after, lines=9, size=100 + len(THIRD))
    assert (more.text, more.cursor) == ("three\n", str(Cursor(AT + 10**9, 1)))


def test_what_the_kubelet_says_in_place_of_a_log_is_an_error() -> None:
    said = b"unable to retrieve container logs for containerd://1\n"
    found = new_text("a", said, Cursor(), lines=9, size=999)
    assert (found.text, found.error) == ("", said.decode().strip())
    assert new_text("a", b"", Cursor(), lines=9, size=999).error is None
    assert new_text("a", THIRD.strip().encode(), Cursor(), lines=9, size=999).error is None
