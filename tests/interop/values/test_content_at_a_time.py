"""The content of maps, lists and texts at a time in the past equals cojson's; a feed has what was pushed until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.jazz_nodes import Clock, content

from reside.jazz import AccountId, CoList, CoMap, CoPlainText

if TYPE_CHECKING:
    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

    from reside.jazz import Group

pytestmark = pytest.mark.anyio


def _edited(group: Group) -> list[CoMap | CoList | CoPlainText]:
    """Return values with several edits, each at another time."""
    settings, items, text = group.create_map({"a": 0}), group.create_list(["a"]), group.create_text("Helo")
    for number in range(4):
        settings.set(f"key{number % 2}", number)
        items.insert(number // 2, number)
        text.append(str(number))
    settings.delete("key1")
    settings.set("a", None)
    items.remove(0)
    items.replace(1, "replaced")
    text.insert(2, "l")
    text.delete_range(5, len(text))
    return [settings, items, text]


def _at(value: Any, time: int) -> Any:
    if isinstance(value, CoMap):
        return value.as_dict(at=time)
    return value.as_list(at=time) if isinstance(value, CoList) else value.as_text(at=time)


async def test_at_each_time_both_languages_read_the_same(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python = await nodes("python", clock=Clock())
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group()
    await group.add_member(AccountId(other["accountID"]), "reader")
    values = _edited(group)
    await python.flush()
    for value in values:
        await js("until", actor="js", id=value.id, expected=content(value))
        written = {item.made_at for item in value._core.transactions}
        times = sorted({time + step for time in written for step in (-1, 0, 1)})
        shown = [_at(value, time) for time in times]
        assert shown == await js("atTimes", actor="js", id=value.id, times=times)
        assert len({repr(state) for state in shown}) > 5
        assert shown[-1] == content(value)


async def test_a_feed_has_what_was_pushed_until_then(nodes: Nodes) -> None:
    feed = (await nodes("python", clock=Clock())).create_group().create_feed()
    for number in range(3):
        feed.push(number)
    times = [entry.at for entry in feed]
    assert [len(feed.entries(at=time)) for time in times] == [1, 2, 3]
    assert feed.entries(at=times[0] - 1) == []


async def test_later_changes_do_not_change_the_content_at_a_time(nodes: Nodes) -> None:
    value = (await nodes("python", clock=Clock())).create_group().create_map({"a": 1})
    then = value.last_edited_at
    before = value.as_dict(at=then)
    value.set("a", 2)
    assert (before, value.as_dict(at=then), value.as_dict()) == ({"a": 1}, {"a": 1}, {"a": 2})
