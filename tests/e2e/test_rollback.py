"""A rollback loads the image of an earlier version again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e.images import touched

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_a_rollback_is_a_new_version_with_the_image_of_an_earlier_one(platform: Platform) -> None:
    platform.load(platform.build("examples/replicas/report", "v1"), "--name", "rolled")
    first = platform.replicas()["rolled"]
    platform.load(touched(platform, first["image"]), "--replica-id", str(first["id"]))
    assert platform.replicas()["rolled"]["image"] != first["image"]
    said = platform.reside("replica", "rollback", "rolled", "--auto-approve").stdout
    assert "version 3 is completed" in said
    found = platform.replicas()["rolled"]
    assert (found["image"], found["version"], found["status"]) == (first["image"], 3, "completed")
    refused = platform.reside("replica", "rollback", "rolled", "--version", "9", check=False)
    assert (refused.returncode, "is not an earlier one: choose from 1, 2" in refused.stderr) == (1, True)
