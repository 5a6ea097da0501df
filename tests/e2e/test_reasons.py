"""Reasons for not running that need a kubelet: all are provoked at once, and the command names each with its cure.

A load shows the reason while it waits. It is then interrupted, which leaves the version as it is.
"""

from __future__ import annotations

import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from e2e.images import running, touched, unreadable, without_contracts
from e2e.test_unhealthy_versions import CRASHES, NEVER_READY
from support.reasons import reasons_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)
REASONS = reasons_of("e2e")
NAMES = {name: name.replace(" ", "-") for name in REASONS}
NOWHERE = "nowhere"
"""A placement group without nodes."""


def interrupted_load(platform: Platform, image: str, *options: str, until: tuple[str, ...]) -> str:
    """Load an image, interrupt the command once it has printed these texts, and return its output on one line."""
    load = subprocess.Popen(
        [*platform.command, "replica", "load", image, "--auto-approve", "--health-deadline", "180", *options],
        env=platform.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with load:
        assert load.stdout is not None
        said = ""
        for line in load.stdout:
            said += line
            if all(text in said for text in until):
                break
        load.send_signal(signal.SIGINT)
        rest, _ = load.communicate(timeout=120)
    return " ".join((said + rest).split())


@pytest.fixture(scope="module")
def said(platform: Platform) -> Iterator[dict[str, tuple[str, str]]]:
    """Yield what load and describe have printed of each reason, while they were provoked side by side."""
    image = without_contracts(platform, platform.replicas()["greeter"]["image"])
    images = {
        "image pull": unreadable(platform, image),
        "crash loop": running(platform, image, CRASHES),
        "failing probe": running(platform, image, NEVER_READY),
        "unschedulable": touched(platform, image),
    }
    assert set(images) == set(REASONS)

    def provoke(name: str) -> tuple[str, str]:
        options = ("--name", NAMES[name])
        if name == "unschedulable":
            platform.load(image, *options)
            platform.reside("replica", "place", NAMES[name], NOWHERE)
            options = ("--replica-id", str(platform.replicas()[NAMES[name]]["id"]))
        printed = interrupted_load(platform, images[name], *options, until=REASONS[name].load)
        described = platform.reside("replica", "describe", NAMES[name])
        return printed, " ".join(described.stdout.split())

    def delete(name: str) -> None:
        platform.reside("replica", "delete", NAMES[name], "--auto-approve")

    with ThreadPoolExecutor(len(REASONS)) as threads:
        yield dict(zip(REASONS, threads.map(provoke, REASONS), strict=True))
        list(threads.map(delete, REASONS))


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_is_named_with_its_cure(said: dict[str, tuple[str, str]], name: str) -> None:
    load, described = said[name]
    REASONS[name].check_load(load)
    REASONS[name].check_describe(described)
    assert f"of {NAMES[name]} is rolled out without this command" in load
