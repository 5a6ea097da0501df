"""How `reside replica logs` prints the logs of pods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from reside.cli.logs import Printer, lines, notes
from reside.cli.output import Output
from reside.model.pod_logs import PodLog, PodState

if TYPE_CHECKING:
    import pytest


def test_lines_name_their_pod_if_there_are_several_and_can_not_control_the_terminal() -> None:
    one = PodLog(pod="a", text="first\tcolumn\r\n\n\x1b[2Jlast")
    assert list(lines([one], named=False)) == ["first\tcolumn", "", "\\x1b[2Jlast"]
    several = [one, PodLog(pod="b"), PodLog(pod="c", text="x\n")]
    assert list(lines(several, named=True)) == ["a | first\tcolumn", "a | ", "a | \\x1b[2Jlast", "c | x"]


def test_what_is_missing_is_said() -> None:
    assert list(notes(PodLog(pod="a", text="x"))) == []
    assert list(notes(PodLog(pod="a", error="is waiting to start"))) == ["a: is waiting to start"]
    assert "earlier lines" in next(notes(PodLog(pod="a", is_cut=True)))


def test_a_follower_sees_each_pod_by_name_once_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(Output.table)
    printer.show_more([PodLog(pod="a", text="one\n")])
    printer.show_more([PodLog(pod="a"), PodLog(pod="b", text="two\n")])
    printer.show_more([PodLog(pod="b", text="three\n")])
    assert capsys.readouterr().out == "one\nb | two\nb | three\n"


def test_a_follower_is_told_once_what_keeps_a_log_from_being_read(capsys: pytest.CaptureFixture[str]) -> None:
    printer, waiting = Printer(Output.table), PodLog(pod="a", error="it is waiting to start")
    for found in (waiting, waiting, PodLog(pod="a", text="x\n", is_cut=True), PodLog(pod="a", text="y\n", is_cut=True)):
        printer.show_more([found])
    said = capsys.readouterr()
    assert said.out == "x\ny\n"
    assert [line.count("waiting to start") for line in said.err.splitlines()] == [1, 0, 0]


def test_a_follower_is_told_once_of_a_line_that_is_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    printer, long = Printer(Output.table), PodLog(pod="a", is_cut=True)
    for found in (long, long, PodLog(pod="a", text="x\n", is_cut=True)):
        printer.show_more([found])
    assert capsys.readouterr().err.count("earlier lines are left out") == 2


def test_a_follower_is_not_warned_of_a_pod_that_is_about_to_start(capsys: pytest.CaptureFixture[str]) -> None:
    starting = PodLog(pod="a", error="it is waiting to start", state=PodState(phase="Pending"))
    failing = PodLog(pod="b", error="it can't pull", state=PodState(phase="Pending", problem="ErrImagePull"))
    Printer(Output.table).show_more([starting, failing])
    said = capsys.readouterr().err
    assert "a: it is waiting" not in said
    assert "b: it can't pull" in said


def test_a_program_gets_one_document_for_each_pod_that_has_written(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(Output.json)
    printer.show_more([PodLog(pod="a", text="one\n", cursor="1/1"), PodLog(pod="b", cursor="0/0")])
    printer.show_more([PodLog(pod="b", text="two\n", cursor="2/1")])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["pod"], each["text"], "cursor" in each) for each in found] == [
        ("a", "one\n", False),
        ("b", "two\n", False),
    ]
