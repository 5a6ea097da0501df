"""Changes that no client of Jazz writes, but that a member can: read as in JavaScript, or as docs/jazz.md says."""

from typing import Any

import pytest
from interop.differences.conftest import Setup, set_key
from interop.javascript import JavaScriptError
from support.jazz_nodes import content

from reside.jazz.wire.encoding import compact_json

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("private", [False, True])
async def test_every_operation_of_a_map_but_a_deletion_assigns(setup: Setup, *, private: bool) -> None:
    value = setup.group.create_map({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1})
    await setup.admin.flush()
    await setup.write(value.id, set_key("a", 2, "replace"), {"key": "b", "value": 2}, private=private)
    await setup.write(value.id, set_key("c", 2, "del"), {"op": 5, "key": "d"}, private=private)
    await setup.write(value.id, {"op": None, "key": "e", "value": [1]}, set_key("f", {}, "del "), private=private)
    assert await setup.both(value.id) == {"a": 2, "b": 2, "e": [1], "f": {}}


async def test_a_key_of_a_map_that_is_no_text_is_ignored(setup: Setup) -> None:
    """JavaScript makes a text of it."""
    value = setup.group.create_map({"a": 1})
    await setup.admin.flush()
    await setup.write(value.id, set_key(5, "number"), set_key(None, "null"), {"op": "set", "value": "none"})
    assert content(await setup.python(value.id)) == {"a": 1}
    theirs = await setup.javascript(value.id)
    assert theirs == {"a": 1, "5": "number", "null": "null", "undefined": "none"}


@pytest.mark.parametrize("change", [None, set_key("constructor", 1)])
async def test_a_map_that_javascript_cannot_load_is_read(setup: Setup, change: Any) -> None:
    value = setup.group.create_map({"a": 1})
    await setup.admin.flush()
    await setup.write(value.id, change, set_key("b", 2))
    expected = {"a": 1, "b": 2} | ({} if change is None else {"constructor": 1})
    assert content(await setup.python(value.id)) == expected
    with pytest.raises(JavaScriptError):
        await setup.javascript(value.id)


@pytest.mark.parametrize("change", [None, {"op": "move", "value": 1}])
async def test_a_list_that_javascript_cannot_load_is_read(setup: Setup, change: Any) -> None:
    value = setup.group.create_list(["a"])
    await setup.admin.flush()
    await setup.write(value.id, change, {"op": "app", "value": "b", "after": "start"})
    assert content(await setup.python(value.id)) == ["a", "b"]
    with pytest.raises(JavaScriptError):
        await setup.javascript(value.id)


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("inner", ["deep", 12345678901234567000, "\ud800"])
async def test_json_of_a_thousand_levels_is_read(setup: Setup, inner: Any, *, private: bool) -> None:
    deep: Any = inner
    for _ in range(500):
        deep = {"a": [deep]}
    value, items = setup.group.create_map({"deep": 1}), setup.group.create_list([1])
    await setup.admin.flush()
    await setup.write(value.id, set_key("deep", deep), private=private)
    await setup.write(items.id, {"op": "app", "value": deep, "after": "start"}, private=private)
    for co_id in (value.id, items.id):
        text = await setup.javascript(co_id, "textOf")
        assert text.count("[") >= 500
        assert compact_json(content(await setup.python(co_id))) == text


async def test_json_of_more_than_a_thousand_levels_does_not_count(setup: Setup) -> None:
    value = setup.group.create_map({"a": 1})
    await setup.admin.flush()
    await setup.writer.load(value.id)
    text = '[{"op":"set","key":"b","value":' + "[" * 2000 + "]" * 2000 + "}]"
    setup.writer.transact_text(value.id, text, made_at=value.history("a")[0].at + 1)
    await setup.write(value.id, set_key("c", 1))
    assert content(await setup.python(value.id)) == {"a": 1, "c": 1}
    assert '"b":[[[' in await setup.javascript(value.id, "textOf")
