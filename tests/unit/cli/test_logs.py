"""How `reside replica logs` prints the logs of pods."""

from __future__ import annotations

from reside.cli.logs import lines, notes
from reside.model.pod_logs import PodLog


def test_lines_name_their_pod_if_there_are_several_and_can_not_control_the_terminal() -> None:
    one = PodLog(pod="a", text="first\tcolumn\r\n\n\x1b[2Jlast")
    assert list(lines([one])) == ["first\tcolumn", "", "\\x1b[2Jlast"]
    several = [one, PodLog(pod="b"), PodLog(pod="c", text="x\n")]
    assert list(lines(several)) == ["a | first\tcolumn", "a | ", "a | \\x1b[2Jlast", "c | x"]


def test_what_is_missing_is_said() -> None:
    assert list(notes(PodLog(pod="a", text="x"))) == []
    assert list(notes(PodLog(pod="a", error="is waiting to start"))) == ["a: is waiting to start"]
    assert "earlier lines" in next(notes(PodLog(pod="a", is_cut=True)))
