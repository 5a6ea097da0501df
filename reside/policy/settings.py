"""The policy of a cluster: the levels of the rules, and the rules of the organisation's pack.

A pack is data, so that nothing of it runs in the Sentinel: a rule names kinds, a path, and what must be there.

    {"levels": {"read-only-root": "mandatory"},
     "rules": [{"id": "team-label", "level": "advisory", "kinds": ["Deployment"], "path": "metadata.labels.team",
                "present": true, "reason": "Costs are charged to teams.", "cure": "set the label team"}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from reside.policy.rule import LEVELS, Level, Rule

if TYPE_CHECKING:
    from reside.policy.context import Context
    from reside.policy.shapes import Manifest

_ID: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
_CHECKS: Final = ("present", "oneOf", "startsWith")
_MEMBERS: Final = frozenset({"id", "level", "kinds", "path", "reason", "cure", *_CHECKS})
MOST_RULES: Final = 100
"""Rules of a pack. Each is checked for each object of each stack."""
EACH: Final = "*"
"""Step of a path: each element of a list, or each member's value of a map."""


class PolicyError(ValueError):
    """The settings of the policy are wrong; the message says where, and what is allowed there."""


@dataclass(frozen=True)
class Policy:
    """The rules of a cluster by name, in the order in which they are checked, with their levels."""

    rules: Mapping[str, Rule]
    levels: Mapping[str, Level] = field(default_factory=dict)
    """The levels that settings change."""

    def level(self, name: str, context: Context) -> Level:
        """Return the level of a rule for the objects of a stack.

        What settings make mandatory is advisory for the parts of ReSide itself: a pack can't stop their updates.
        """
        rule = self.rules[name]
        level = self.levels.get(name, rule.level)
        is_ours = rule.level == "mandatory" and not isinstance(rule.judge, DeclaredJudge)
        return level if is_ours or not context.is_system else "advisory"


@dataclass(frozen=True)
class DeclaredJudge:
    """A rule of a pack: what must be at a path of objects of some kinds."""

    kinds: frozenset[str]
    path: tuple[str, ...]
    check: str
    expected: Any
    cure: str

    def __call__(self, manifest: Manifest, _: Context) -> Iterator[str]:
        """Yield a message for each place at which something else is. It never contains what was found."""
        if manifest.get("kind") not in self.kinds:
            return
        for place, found in _values(manifest, self.path, ""):
            if not self._holds(found):
                is_missing = found is None and self.expected is not False
                yield f"{place} {'is missing' if is_missing else 'is not allowed'}: {self.cure}"

    def _holds(self, found: Any) -> bool:
        if self.check == "present":
            return (found is not None) is self.expected
        if self.check == "oneOf":
            return any(type(found) is type(each) and found == each for each in self.expected)
        return isinstance(found, str) and found.startswith(tuple(self.expected))


def parse(document: object, built_in: Mapping[str, Rule]) -> Policy:
    """Return the policy that settings describe.

    Args:
        document: the settings, as JSON.
        built_in: the rules of ReSide.

    Raises:
        PolicyError: the settings are malformed.
    """
    members = _mapping(document, "the policy", {"levels", "rules"})
    declared = members.get("rules", [])
    if not isinstance(declared, list) or len(declared) > MOST_RULES:
        raise PolicyError(f"rules must be a list of at most {MOST_RULES} rules")
    rules = dict(built_in)
    for number, each in enumerate(declared):
        name, rule = _rule(each, f"rule {number}")
        if name in rules:
            raise PolicyError(f"rule {number}: there is a rule {name} already: choose another id")
        rules[name] = rule
    levels = _mapping(members.get("levels", {}), "levels", rules.keys())
    for name, level in levels.items():
        if rules[name].is_fixed and level != rules[name].level:
            raise PolicyError(f"levels: {name} is always {rules[name].level}, because the Sentinel relies on it")
        _level(level, f"levels: {name}")
    return Policy(rules, {name: _level(level, name) for name, level in levels.items()})


def _rule(document: object, what: str) -> tuple[str, Rule]:
    members = _mapping(document, what, _MEMBERS)
    name = members.get("id")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise PolicyError(f"{what}: id must be a name of lower-case letters, digits and dashes")
    what = f"rule {name}"
    kinds = members.get("kinds")
    if not _texts(kinds):
        raise PolicyError(f"{what}: kinds must be a list of kinds, such as Deployment")
    reason, cure = (_text(members, member, what) for member in ("reason", "cure"))
    checks = [check for check in _CHECKS if check in members]
    if len(checks) != 1:
        raise PolicyError(f"{what}: it needs one of {', '.join(_CHECKS)}")
    judge = DeclaredJudge(
        frozenset(kinds), _path(members.get("path"), what), checks[0], _expected(checks[0], members, what), cure
    )
    return name, Rule(judge, reason, cure, _level(members.get("level", "advisory"), what))


def _expected(check: str, members: Mapping[str, Any], what: str) -> Any:
    expected = members[check]
    if check == "present":
        if not isinstance(expected, bool):
            raise PolicyError(f"{what}: present must be true or false")
        return expected
    is_list = isinstance(expected, list) and bool(expected)
    scalars = is_list and all(isinstance(each, str | int | float | bool) for each in expected)
    if not (scalars if check == "oneOf" else _texts(expected)):
        raise PolicyError(f"{what}: {check} must be a list of {'values' if check == 'oneOf' else 'texts'}")
    return tuple(expected)


def _path(path: object, what: str) -> tuple[str, ...]:
    """Return the steps of a path: a text with dots, or a list, if a member's name has a dot."""
    steps = path.split(".") if isinstance(path, str) else path
    if not _texts(steps):
        raise PolicyError(f"{what}: path must be members with dots between them, such as spec.template, or their list")
    return tuple(steps)


def _values(value: Any, path: tuple[str, ...], place: str) -> Iterator[tuple[str, Any]]:
    """Yield place and value of everything at a path; None for a member that is missing."""
    if not path:
        yield place, value
        return
    step, rest = path[0], path[1:]
    if step != EACH:
        inner = value.get(step) if isinstance(value, Mapping) else None
        yield from _values(inner, rest, f"{place}.{step}" if place else step)
        return
    if isinstance(value, Mapping):
        parts = [(f"{place}.{name}", item) for name, item in value.items()]
    else:
        is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        parts = [(f"{place}[{number}]", item) for number, item in enumerate(value)] if is_list else []
    for name, item in parts:
        yield from _values(item, rest, name)


def _mapping(document: object, what: str, members: Any) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise PolicyError(f"{what} must be a JSON object")
    unknown = sorted(str(name) for name in document if name not in members)
    if unknown:
        raise PolicyError(f"{what}: {', '.join(unknown)} is unknown: use {', '.join(sorted(members))}")
    return document


def _level(level: object, what: str) -> Level:
    for known in LEVELS:
        if level == known:
            return known
    raise PolicyError(f"{what}: the level must be {' or '.join(LEVELS)}")


def _text(members: Mapping[str, Any], member: str, what: str) -> str:
    value = members.get(member)
    if not isinstance(value, str) or not value:
        raise PolicyError(f"{what}: {member} must be a text")
    return value


def _texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) and each for each in value)
