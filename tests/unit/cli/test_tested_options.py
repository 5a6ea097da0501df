"""Each command and each of its options is run by a test: the declarations are compared with what tests run.

That a test names an option does not show that it checks what the option does. That none names it shows that it does
not.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from support import command_words

from reside.cli import declarations

EXCEPTIONS: Final[frozenset[str]] = frozenset()
"""Commands and options without a test, each as `COMMAND` or `COMMAND --OPTION`: there are none."""


def untested() -> set[str]:
    """Return the commands and the options that no test runs."""
    found = set()
    for path, declared in declarations.load().items():
        if declarations.PARAMETERS not in declared:
            continue
        words = path.split()
        lines = [line for line in command_words.commands() if command_words.names(line, words)]
        if not lines:
            found.add(path)
        options = [each["options"] for each in declared[declarations.PARAMETERS] if "options" in each]
        found |= {
            f"{path} {spellings[0]}"
            for spellings in options
            if not any(command_words.names(line, words, spellings) for line in lines)
        }
    return found


def test_each_command_and_each_option_is_run_by_a_test() -> None:
    assert sorted(untested() - EXCEPTIONS) == [], "write a test that runs these"


def test_no_exception_is_left_behind() -> None:
    assert untested() >= EXCEPTIONS


@pytest.mark.parametrize(
    ("line", "path", "option", "found"),
    [
        ("reside replica list -o json", "replica list", "-o", True),
        ("reside replica list --output=json", "replica list", "--output", True),
        ("reside replica --output list", "replica list", "--output", False),
        ("reside replica list", "replica list", "--output", False),
        ("reside replica describe x --output json", "replica list", "--output", False),
    ],
)
def test_an_option_counts_after_its_command(line: str, path: str, option: str, found: bool) -> None:
    assert command_words.names(tuple(line.split()), path.split(), [option]) is found


def test_the_words_of_a_command_may_be_spread() -> None:
    """As in test_cluster_options: the command and its options are parameters of a test."""
    settings = Counter(
        option
        for words in command_words.commands()
        for option in ("--gateway", "--jazz-mode")
        if command_words.names(words, ["cluster", "manifest"], [option])
    )
    assert settings.keys() == {"--gateway", "--jazz-mode"}
