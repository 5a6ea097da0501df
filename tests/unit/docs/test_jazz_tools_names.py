"""Every name of this package that docs/jazz.md gives for one of jazz-tools exists."""

from support.jazz_tools_names import rows

import reside.jazz
import reside.jazz.typed

LEAST = 40


def test_every_name_exists() -> None:
    found = rows()
    assert len(found) >= LEAST
    for _, ours in found:
        assert ours
        for name in ours:
            path = name.removeprefix("reside.jazz.typed.")
            place = reside.jazz.typed if path != name else reside.jazz
            first, *attributes = path.split(".")
            assert first in place.__all__, name
            value = getattr(place, first)
            for attribute in attributes:
                assert hasattr(value, attribute), name
                value = getattr(value, attribute)


def test_no_name_of_jazz_tools_is_there_twice() -> None:
    theirs = [name for names, _ in rows() for name in names]
    assert len(theirs) == len(set(theirs))
