"""The run of the bootstrap program: its progress, its errors, and the tracked configuration afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.cli import project

if TYPE_CHECKING:
    from pathlib import Path

STACK = "urn:pulumi:local::reside::"


@pytest.mark.parametrize(
    ("urn", "name"),
    [
        (f"{STACK}reside:bootstrap:Load$pulumi-python:dynamic:Resource::loaded", "Load loaded"),
        (f"{STACK}reside:bootstrap:Storage$kubernetes:core/v1:Service::service-jazz", "Storage service-jazz"),
        (f"{STACK}reside:bootstrap:Load::load", None),
        (f"{STACK}pulumi:pulumi:Stack::reside-local", None),
        (f"{STACK}pulumi:providers:kubernetes::cluster", None),
    ],
)
def test_steps_are_shown_by_phase_and_groups_are_hidden(urn: str, name: str | None) -> None:
    assert project.step_name(urn) == name


def test_the_salt_is_removed_from_the_tracked_file(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.local.yaml"
    file.write_text("config:\n  reside:namespace: reside\n")
    with project._without_salt(file):
        file.write_text("encryptionsalt: v1:abc\n" + file.read_text())
    assert file.read_text() == "config:\n  reside:namespace: reside\n"


def test_a_file_that_contained_only_the_salt_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.other.yaml"
    with project._without_salt(file):
        file.write_text("encryptionsalt: v1:abc\n")
    assert not file.exists()


def test_the_reason_of_a_failure_contains_each_message_once() -> None:
    text = """
 stderr:
    pulumi:pulumi:Stack reside-local running ERROR:grpc._server:Exception calling application: jazz is not ready
 ~  pulumi-python:dynamic:Resource loaded updating (9s) error: Exception calling application: jazz is not ready
    pulumi:pulumi:Stack reside-local running error: update failed
    error: the disk is full
"""
    assert project.reason(text) == "jazz is not ready; the disk is full"


def test_an_output_without_errors_is_shown_by_its_end() -> None:
    assert project.reason("code: 255\nstdout: killed\n") == "code: 255 stdout: killed"
