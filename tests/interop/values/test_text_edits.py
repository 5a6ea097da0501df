"""Texts and lists edited by both sides: the same graphemes in the same order."""

import random
from collections.abc import Callable

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Clock, Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, CoList, CoPlainText, Node, now_ms
from reside.jazz.values.text import graphemes

pytestmark = pytest.mark.anyio

SAMPLE = "grüße, \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301\r\n\U0001f1e9\U0001f1ea क्षि \u2028 한국어 ก็"


async def _both(jazz: JazzServer, js: JavaScript, nodes: Nodes, clock: Callable[[], int] = now_ms) -> tuple[Node, str]:
    """Return a node, and a group of it in which the JavaScript actor `js` may write."""
    python = await nodes("python", clock=clock)
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group()
    await group.add_member(AccountId(other["accountID"]), "writer")
    await python.flush()
    return python, group.id


async def test_a_text_of_python_is_edited_in_javascript(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    text = (await python.load_group(group)).create_text(SAMPLE)
    await python.flush()
    assert await js("load", actor="js", id=text.id) == SAMPLE
    assert await js("items", actor="js", id=text.id) == text.graphemes()
    await js("insertBefore", actor="js", id=text.id, at=0, text="Ab")
    await js("insertAfter", actor="js", id=text.id, at=1, text="c\U0001f600d")
    await js("deleteRange", actor="js", id=text.id, **{"from": 5, "to": 8})
    expected = "Abc\U0001f600d" + "".join(graphemes(SAMPLE)[3:])
    assert await js("load", actor="js", id=text.id) == expected
    await until(text, expected)


async def test_a_text_of_javascript_is_edited_in_python(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    made = await js("text", actor="js", group=group, init=SAMPLE)
    await js("flush", actor="js")
    text = await python.load_text(made)
    assert str(text) == SAMPLE
    text.insert(0, "start ")
    text.insert_after(5, "\U0001f468\u200d\U0001f469\u200d\U0001f467")
    text.append(" end")
    text.delete_range(7, 12)
    expected = "start \U0001f468\u200d\U0001f469\u200d\U0001f467" + "".join(graphemes(SAMPLE)[5:]) + " end"
    assert str(text) == expected
    await js("until", actor="js", id=text.id, expected=expected)
    text.apply(expected.replace("end", "brand new end").replace("start", "tart"))
    await js("until", actor="js", id=text.id, expected=str(text))


async def test_a_long_text_is_written_in_transactions_of_512_graphemes(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group = await _both(jazz, js, nodes)
    long = "".join(chr(0x61 + number % 26) for number in range(5_000))
    text = (await python.load_group(group)).create_text(long)
    await python.flush()
    assert len(text.refusals()) == 10
    await js("until", actor="js", id=text.id, expected=long)
    made = await js("text", actor="js", group=group, init=long)
    await js("flush", actor="js")
    theirs = await python.load_text(made)
    assert str(theirs) == long
    assert [index for _, index, _ in theirs.refusals()] == [index for _, index, _ in text.refusals()]
    theirs.apply(long[:100] + long[1000:2000] + "Z" * 1_500 + long[2100:])
    await js("until", actor="js", id=made, expected=str(theirs))


async def test_both_split_texts_into_the_same_graphemes(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    _, group = await _both(jazz, js, nodes)
    made = await js("text", actor="js", group=group, init="")
    choose = random.Random(7)  # noqa: S311 - a test's program
    words = [
        "क्षि",
        "ष",
        "한국",
        "\u1112\u1161\u11ab",
        "e\u0301\u0323",
        "\r\n",
        "\r",
        "\n",
        "ก็",
        "தமிழ்",
        "a\u200d",
        "\u0600\u0661",
        "x\ufe0f",
    ]
    words += [
        "\U0001f44d\U0001f3fd",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1e9\U0001f1ea",
        "\U0001f1eb",
        "\U0001f3f4\U000e0067",
    ]
    texts = ["".join(choose.choices(words, k=12)) for _ in range(2_000)]
    assert await js("graphemes", actor="js", id=made, texts=texts) == [graphemes(text) for text in texts]


@pytest.mark.parametrize("seed", range(4))
async def test_concurrent_edits_of_a_text_converge(seed: int, jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    clock = Clock()
    python, group = await _both(jazz, js, nodes, clock)
    choose = random.Random(seed)  # noqa: S311 - a test's program
    text = (await python.load_group(group)).create_text(SAMPLE)
    await python.flush()
    for number in range(30):
        _edit_text(text, choose, f"<{number}é>")
        kind = choose.choice(["before", "after", "delete"])
        await js("clock", actor="js", at=clock())
        await js("editText", actor="js", id=text.id, kind=kind, at=choose.random(), text=f"[{number}\U0001f600]")
        if choose.random() < 0.3:
            await _settle(python, js, text)
    await _settle(python, js, text)
    assert str(text) == await js("load", actor="js", id=text.id)


@pytest.mark.parametrize("seed", range(4))
async def test_concurrent_edits_of_a_list_end_in_the_same_order(
    seed: int, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    clock = Clock()
    python, group = await _both(jazz, js, nodes, clock)
    choose = random.Random(seed)  # noqa: S311 - a test's program
    value = (await python.load_group(group)).create_list(range(5))
    await python.flush()
    for number in range(30):
        _edit_list(value, choose, f"p{number}")
        kind = choose.choice(["append", "after", "prepend", "replace", "delete"])
        values = [f"j{number}a", f"j{number}b"]
        await js("clock", actor="js", at=clock())
        await js("editList", actor="js", id=value.id, kind=kind, at=choose.random(), values=values)
        if choose.random() < 0.3:
            await _settle(python, js, value)
    await _settle(python, js, value)
    assert value.as_list() == await js("load", actor="js", id=value.id)


def _edit_text(text: CoPlainText, choose: random.Random, added: str) -> None:
    start = choose.randint(0, len(text))
    stop = min(len(text), start + choose.randint(0, 4))
    kind = choose.random()
    if kind < 0.4:
        text.insert(start, added)
    elif kind < 0.7:
        text.delete_range(start, stop)
    else:
        text.apply("".join([*text.graphemes()[:start], added, *text.graphemes()[stop:]]))


def _edit_list(value: CoList, choose: random.Random, added: str) -> None:
    place = choose.randint(0, max(0, len(value) - 1))
    kind = choose.randrange(7) if len(value) else 0
    if kind == 0:
        value.extend([added, f"{added}b"])
    elif kind == 1:
        value.insert(place, added)
    elif kind == 2:
        value.replace(place, added)
    elif kind == 3:
        value.move(place, choose.randint(0, len(value) - 1))
    elif kind == 4:
        value.remove(place)
    elif kind == 5:
        value.splice(place, place + 2, [added, f"{added}b", f"{added}c"])
    else:
        value.apply([*value.as_list()[::2], added])


async def _settle(python: Node, js: JavaScript, value: CoList | CoPlainText) -> None:
    """Wait until both have the same transactions."""
    await python.flush()
    await js("flush", actor="js")
    await python.catch_up()
    await js("until", actor="js", id=value.id, count=len(value.refusals()))


async def test_jazz_tools_reads_and_changes_texts(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    python = await nodes("python")
    group = python.create_group()
    await group.add_member("everyone", "writer")
    text = group.create_text(SAMPLE)
    await python.flush()
    await tools("login", actor="tools", url=jazz.url, **await tools("create", url=jazz.url, name="tools"))
    assert await tools("readText", actor="tools", id=text.id) == SAMPLE
    await tools("applyText", actor="tools", id=text.id, text=SAMPLE.replace("grüße", "Grüße aus"))
    await until(text, SAMPLE.replace("grüße", "Grüße aus"))
    made = await tools("createText", actor="tools", owner=group.id, text=SAMPLE)
    await tools("flush", actor="tools")
    assert (await python.load_text(made)).graphemes() == graphemes(SAMPLE)
