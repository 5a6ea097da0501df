"""The toolchain's build: the estimate of the remaining time."""

import pytest

from tools.builder.estimate import Estimate, words
from tools.builder.golang import Package
from tools.builder.units import Unit

BIG = Unit("big", {}, cost=600, compiled=600)
SMALL = Unit("small", {}, cost=60, compiled=20)


def packages(*paths: str, version: str = "v1.0.0") -> frozenset[Package]:
    return frozenset(Package(path, version) for path in paths)


@pytest.fixture
def estimate(monkeypatch: pytest.MonkeyPatch) -> Estimate:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    made = Estimate()
    made.begin([BIG, SMALL])
    return made


def test_before_packages_are_known_a_unit_costs_its_estimate(estimate: Estimate) -> None:
    assert estimate.seconds_left(0.0) == 330


def test_only_what_go_has_to_compile_counts(estimate: Estimate) -> None:
    estimate.expect("big", packages("a", "b", "c"))
    estimate.expect("small", packages())
    assert estimate.seconds_left(0.0) == 1.5


def test_a_package_that_two_units_compile_counts_once_unless_its_version_differs(estimate: Estimate) -> None:
    estimate.expect("big", packages("a"))
    estimate.expect("small", packages("a"))
    assert estimate.packages_left("small") == 0
    estimate.expect("small", packages("a", version="v1.1.0"))
    assert estimate.packages_left("small") == 1
    assert estimate.seconds_left(0.0) == 2


def test_the_remaining_time_depends_on_the_speed_so_far(estimate: Estimate) -> None:
    paths = [f"package{number}" for number in range(330)]
    estimate.expect("big", packages(*paths))
    estimate.expect("small", packages())
    for path in paths[:90]:
        estimate.compiled("big", path)
    assert estimate.packages_left("big") == 240
    assert estimate.seconds_left(45.0) == 120
    assert estimate.seconds_left(270.0) == 480


def test_nothing_is_left_of_a_finished_unit_even_if_go_named_fewer_packages(estimate: Estimate) -> None:
    estimate.expect("big", packages("a", "b"))
    estimate.compiled("big", "unknown")
    estimate.finished("big")
    estimate.finished("small")
    assert estimate.seconds_left(100.0) == 0


def test_words() -> None:
    assert words(7 * 60 + 20) == "about 7 min left"
    assert words(20) == "less than a minute left"
