"""The toolchain's Go modules: units that share compiled packages require the same versions."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from tools.builder.units import UNITS, Unit

CHECKOUT = Path(__file__).parents[3]
_REQUIRED = re.compile(r"^(?:require\s+|\t)(\S+) (v\S+)", re.MULTILINE)
_REPLACED = re.compile(r"^(?:replace\s+|\t)(\S+)(?: v\S+)? => (\S+)(?: (v\S+))?$", re.MULTILINE)


def required(unit: Unit) -> dict[str, str]:
    """Return the version of each module that a unit's go.mod names; of a replaced one, what it is replaced by."""
    text = (CHECKOUT / unit.module / "go.mod").read_text()
    versions = dict(_REQUIRED.findall(text))
    for module, by, version in _REPLACED.findall(text):
        if not version:
            versions[module] = str((CHECKOUT / unit.module / by).resolve().relative_to(CHECKOUT))
        elif module in versions:
            versions[module] = version if by == module else f"{by} {version}"
    return versions


SHARING = [
    pytest.param(one, other, id=f"{one.name} and {other.name}")
    for base in UNITS
    for one, other in combinations([base, *(unit for unit in UNITS if base.name in unit.after)], 2)
]


@pytest.mark.parametrize(("one", "other"), SHARING)
def test_units_that_share_compiled_packages_require_the_same_versions(one: Unit, other: Unit) -> None:
    versions, others = required(one), required(other)
    assert {name: versions[name] for name in versions if name in others} == {
        name: others[name] for name in others if name in versions
    }


def test_kubernetes_and_pulumi_are_shared() -> None:
    assert len(SHARING) == 6


def test_a_replaced_module_counts_as_what_replaces_it() -> None:
    units = {unit.name: required(unit) for unit in UNITS}
    assert units["kubernetes"]["k8s.io/kubectl"] == "v0.34.3"
    assert units["pulumi"]["github.com/atotto/clipboard"].startswith("github.com/tgummerer/clipboard v0")
    assert units["pulumi-kubernetes"]["github.com/pulumi/pulumi-kubernetes/sdk/v4"] == "tools/pulumi-kubernetes/sdk"
