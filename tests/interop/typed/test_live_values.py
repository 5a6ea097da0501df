"""Typed values on a server: loading, watching, refused writes, and their errors."""

import asyncio
from typing import Any

import pytest
from interop.typed.models import Cat, Dog, Home, Note, Project, Settings, Task, Theme
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import Account, CoMap, Group, Node, NodeClosed, NotPermitted, ValueNotFound
from reside.jazz.typed import (
    CoMapModel,
    DeepWatch,
    FeedOf,
    ListOf,
    NotLoaded,
    RecordOf,
    ReferenceNotFound,
    SchemaError,
    SchemaMismatch,
    Text,
    field,
    tolerate,
)

pytestmark = pytest.mark.anyio

UNKNOWN = "co_z11111111111111111111111111"


class Book(CoMapModel):
    """References values of all kinds."""

    title: str
    text: Text | None = None
    notes: ListOf[Note] = field(default_factory=ListOf)
    by_name: RecordOf[Note] = field(default_factory=RecordOf, key="byName")
    maybe: "RecordOf[Note | None]" = field(default_factory=RecordOf)
    log: FeedOf[Note] = field(default_factory=FeedOf)
    author: Account | None = None
    readers: Group | None = None
    extra: CoMap | None = None


@pytest.fixture
async def alice(nodes: Nodes) -> Node:
    """Return the node that writes."""
    return await nodes("alice")


@pytest.fixture
async def bob(nodes: Nodes) -> Node:
    """Return the node that reads."""
    return await nodes("bob")


@pytest.fixture
async def team(alice: Node, bob: Node) -> Group:
    """Return Alice's group, in which Bob is a reader."""
    group = alice.create_group()
    await group.add_member(bob.account_id, "reader")
    await alice.flush()
    return group


async def test_every_kind_of_reference_is_loaded(alice: Node, bob: Node, team: Group) -> None:
    extra = team.create_map({"x": 1})
    book = Book(
        title="t",
        text=Text("abc"),
        notes=ListOf([Note(text="1")]),
        by_name=RecordOf({"a": Note(text="2")}),
        log=FeedOf([Note(text="3")]),
        author=alice.account,
        readers=team,
        extra=extra,
    ).create(team)
    await alice.flush()
    read = await Book.load(
        bob,
        book.id,
        resolve=lambda book: (
            book.text,
            book.notes.each,
            book.by_name["a"],
            book.log.each,
            book.author,
            book.readers,
            book.extra,
        ),
    )
    latest = read.log.latest()
    assert latest is not None
    assert read.author is not None
    assert read.readers is not None
    assert read.extra is not None
    assert (str(read.text), read.notes[0].text, read.by_name["a"].text) == ("abc", "1", "2")
    assert (latest.value.text, latest.by, read.log.by_account()[alice.account_id]) == ("3", alice.account_id, latest)
    assert (read.author.account_id, read.readers.id, read.extra["x"]) == (alice.account_id, team.id, 1)
    assert (read.as_dict()["text"], read.as_dict()["extra"]) == (book.text and book.text.id, extra.id)
    assert read == book._view(read.raw)
    assert hash(read) == hash(book)
    assert repr(read) == f"<Book {book.id}>"


async def test_using_an_unloaded_reference_is_an_error_that_says_how_to_load_it(
    alice: Node, bob: Node, team: Group
) -> None:
    book = Book(title="t", notes=ListOf([Note(text="1")])).create(team)
    await alice.flush()
    read = await Book.load(bob, book.id)
    with pytest.raises(
        NotLoaded, match=r"Book.notes refers to co_z\w+, which is not loaded: include notes in `resolve`"
    ):
        _ = read.notes
    read = await read.ensure({"notes": True})
    with pytest.raises(NotLoaded, match=r"ListOf\[Note\]\[0\] refers to") as error:
        _ = read.notes[0]
    assert error.value.value == book.notes[0].id == read.notes.ids()[0]
    assert read.notes.loaded() == []
    read = await read.ensure(lambda book: book.notes.each)
    assert [note.text for note in read.notes.loaded()] == ["1"]


async def test_a_broken_reference_names_its_path_and_may_be_tolerated(alice: Node, bob: Node, team: Group) -> None:
    book = Book(title="t", notes=ListOf([Note(text="1")]), by_name=RecordOf({"a": Note(text="2")})).create(team)
    book.notes.raw.append(UNKNOWN)
    await alice.flush()
    with pytest.raises(ReferenceNotFound, match=r"Book\.notes\[1\] refers to it, in co_z") as error:
        await Book.load(bob, book.id, resolve=lambda book: book.notes.each)
    assert (error.value.value, error.value.path, error.value.referrer) == (UNKNOWN, "Book.notes[1]", book.notes.id)
    read = await Book.load(bob, book.id, resolve=lambda book: (tolerate(book.notes.each), book.by_name.each))
    assert [note.text for note in read.notes.loaded()] == ["1"]
    assert [(key, note.text) for key, note in read.by_name.items()] == [("a", "2")]
    with pytest.raises(NotLoaded):
        list(read.notes)
    with pytest.raises(ValueNotFound):
        await Book.load(bob, UNKNOWN)


async def test_an_unreadable_value_is_an_error_with_group_and_role(alice: Node, bob: Node, team: Group) -> None:
    private = alice.create_group()
    note = Note(text="1").create(private)
    task = Task(title="t", score=None, note=note).create(team)
    await alice.flush()
    with pytest.raises(NotPermitted, match=f"read {note.id}: role in group {private.id} is none, needs reader"):
        await Note.load(bob, note.id)
    with pytest.raises(NotPermitted) as refused:
        await Task.load(bob, task.id, resolve=lambda task: task.note)
    assert (refused.value.value, refused.value.group, refused.value.role) == (note.id, private.id, None)
    assert (await Task.load(bob, task.id, resolve=lambda task: tolerate(task.note))).title == "t"


async def test_a_refused_write_names_field_and_role_and_creates_nothing(alice: Node, bob: Node, team: Group) -> None:
    project = Project(name="p", tasks=ListOf([Task(title="t", score=None)])).create(team)
    await alice.flush()
    read = await Project.load(bob, project.id, resolve={"tasks": {"$each": True}, "labels": True, "events": True})
    held = len(bob._host.store.cores)
    task = Task(title="new", score=None)
    refusals: list[tuple[Any, str]] = [
        (lambda: setattr(read.tasks[0], "note", Note(text="n")), "set Task.note of"),
        (lambda: read.tasks[0].update(done=True, nick=None), "set Task.done, Task.nick of"),
        (lambda: delattr(read.tasks[0], "nick"), "unset Task.nick of"),
        (lambda: read.tasks.append(task), r"add to the ListOf\[Task\]"),
        (lambda: read.tasks.insert(0, task), r"add to the ListOf\[Task\]"),
        (lambda: read.labels.update({"a": "1"}), r"set a of the RecordOf\[str\]"),
        (lambda: read.events.push({"what": "x"}), "push to the FeedOf"),
    ]
    for write, act in refusals:
        with pytest.raises(NotPermitted, match=f"not permitted to {act}.* role in group .* is reader, needs writer"):
            write()
    assert len(bob._host.store.cores) == held
    assert task.is_draft


async def test_invalid_content_is_an_error_with_field_value_group_and_role(alice: Node, bob: Node, team: Group) -> None:
    wrong = team.create_map({"title": 5, "level": "middle", "done": None, "note": team.create_list([]).id})
    await alice.flush()
    task = await Task.load(bob, wrong.id)
    for name, found in (
        ("title", "a number"),
        ("level", "a text of 6 characters"),
        ("done", "null"),
        ("tags", None),
        ("score", None),
    ):
        if found is None:
            assert getattr(task, name) in ([], None)  # the default, and what may be null
            continue
        with pytest.raises(SchemaMismatch, match=f"Task.{name} of {wrong.id} must be .*, found {found}") as mismatch:
            getattr(task, name)
        assert (mismatch.value.group, mismatch.value.role, mismatch.value.found) == (team.id, "reader", found)
    with pytest.raises(SchemaMismatch, match=r"Task\.note .* must be a reference to a Note, found co_z\w+, a list"):
        await Task.load(bob, wrong.id, resolve={"note": True})
    with pytest.raises(SchemaMismatch, match=r"Note of co_z\w+ must be a map, found a list"):
        await Note.load(bob, wrong["note"])
    with pytest.raises(SchemaMismatch, match="found nothing: the key is absent"):
        _ = (await Note.load(bob, wrong.id)).text
    wrong.set("note", "nonsense")
    await until(await bob.load_map(wrong.id), lambda value: value["note"] == "nonsense")
    for act in (lambda: task.note, lambda: task.id_of("note")):
        with pytest.raises(SchemaMismatch, match="that is not an id"):
            act()
    with pytest.raises(SchemaMismatch, match=r"Task\.note"):
        await Task.load(bob, wrong.id, resolve={"note": True})


async def test_a_union_without_a_matching_member_is_refused(alice: Node, team: Group) -> None:
    home = Home(pet=Cat(lives=9)).create(team)
    assert isinstance(home.pet, Cat)
    home.pet.raw.set("type", "bird")
    with pytest.raises(SchemaMismatch, match=r"Home\.pet .* must be a reference to a Cat or Dog"):
        _ = home.pet
    home.pet = Dog(tricks=[])
    assert isinstance(home.pet, Dog)


async def test_writes_are_atomic(alice: Node, team: Group) -> None:
    task = Task(title="t", score=None, nick="n").create(team)
    before = len(task.raw.history("title"))
    with pytest.raises(SchemaMismatch, match=r"Task\.done of co_z"):
        task.update(title="u", done=3)
    with pytest.raises(SchemaError, match="has no field nope"):
        task.update(nope=1)
    assert (task.title, len(task.raw.history("title"))) == ("t", before)
    del task.nick
    assert "nick" not in task.raw
    with pytest.raises(SchemaError, match="was created before"):
        task.create(team)


async def test_collections_are_written_in_place(alice: Node, team: Group) -> None:
    book = Book(title="t").create(alice)
    assert book.group.my_role == "admin"
    book.notes.extend([Note(text="a"), Note(text="c")])
    book.notes.insert(1, Note(text="b"))
    del book.notes[0]
    assert ([note.text for note in book.notes], len(book.notes), book.notes[-1:][0].text) == (["b", "c"], 2, "c")
    book.by_name["x"] = Note(text="d")
    book.by_name["y"] = book.by_name["x"]
    del book.by_name["x"]
    assert (list(book.by_name), len(book.by_name), "x" in book.by_name, "y" in book.by_name) == (["y"], 1, False, True)
    assert (book.by_name.get("x"), book.by_name.get("y")) == (None, book.by_name["y"])
    book.maybe["gone"] = None
    assert (book.maybe.raw["gone"], book.maybe["gone"]) == (None, None)
    assert book.log.latest() is None
    book.log.push(Note(text="e"))
    assert [item.value.text for item in book.log] == ["e"]
    book.text = Text("old")
    assert book.text is not None
    book.text.apply("older")
    assert (str(book.text), len(book.text)) == ("older", 5)


async def test_a_class_says_who_owns_the_drafts_in_a_value(alice: Node, bob: Node, team: Group) -> None:
    class Own(CoMapModel, inline="new"):
        x: int

    class Seen(CoMapModel, inline="reader"):
        x: int

    class Holder(CoMapModel):
        own: Own
        seen: Seen
        theme: Theme

    holder = Holder(own=Own(x=1), seen=Seen(x=2), theme=Theme(color="red")).create(team)
    assert holder.own.group.parents() == {}
    assert holder.seen.group.parents() == {team.id: "reader"}
    assert holder.theme.group == team
    mine = Holder(own=Own(x=1), seen=Seen(x=2), theme=Theme(color="red")).create(alice.account)
    assert (mine.group, mine.seen.group.parents()) == (alice.account, {})


async def test_every_kind_can_be_unique(alice: Node, bob: Node, team: Group) -> None:
    made: list[Any] = [
        await ListOf[str](["a"]).get_or_create_unique(team, "list"),
        await RecordOf[str]({"a": "b"}).get_or_create_unique(team, "record"),
        await FeedOf[str](["a"]).get_or_create_unique(team, "feed"),
        await Text("abc").get_or_create_unique(team, "text"),
        await Settings(language="en", theme=Theme(color="red")).get_or_create_unique(team, {"a": "b"}),
    ]
    await alice.flush()
    theirs = await bob.load_group(team.id)
    names = ["list", "record", "feed", "text", {"a": "b"}]
    for value, name in zip(made, names, strict=True):
        found = await type(value).load_unique(theirs, name)
        assert (found.id, found.raw._refresh() > 0) == (value.id, True)
    assert str(await Text().get_or_create_unique(team, "text")) == "abc"
    made[4].raw.set("theme", UNKNOWN)
    with pytest.raises(ReferenceNotFound):
        await Settings.load_unique(team, {"a": "b"}, resolve={"theme": True})


async def test_a_watch_follows_references_that_change(alice: Node, bob: Node, team: Group) -> None:
    task = Task(title="t", score=None, note=Note(text="1")).create(team)
    await alice.flush()
    old = task.note
    assert old is not None
    async with Task.subscribe(bob, task.id, resolve=lambda task: task.note) as states:
        assert isinstance(states, DeepWatch)
        first = await anext(states)
        assert first.note is not None
        assert first.note.text == "1"
        task.note = Note(text="2")
        second = await anext(states)
        while second.note == old:
            second = await anext(states)
        assert second.note is not None
        assert second.note.text == "2"
        watched = bob._host.watches.count
        old.text = "nobody sees this"
        second_note = task.note
        assert second_note is not None
        second_note.text = "3"
        third = await anext(states)
        assert third.note is not None
        assert (third.note.text, bob._host.watches.count) == ("3", watched)
    assert bob._host.watches.count == 0
    with pytest.raises(StopAsyncIteration):
        await anext(states)


async def test_a_watch_reports_that_reading_is_no_longer_permitted(alice: Node, bob: Node, team: Group) -> None:
    note = Note(text="1").create(team)
    await alice.flush()
    async with Note.subscribe(bob, note.id) as states:
        await anext(states)
        await team.remove_member(bob.account_id)
        with pytest.raises(NotPermitted):
            await anext(states)
        with pytest.raises(NotPermitted):
            await anext(states)  # it retries immediately


async def test_a_watch_ends_with_its_node(jazz: JazzServer, nodes: Nodes, alice: Node, team: Group) -> None:
    note = Note(text="1").create(team)
    states = note.watch()
    await anext(states)
    waiting = asyncio.ensure_future(anext(states))
    await asyncio.sleep(0)
    await alice.close()
    with pytest.raises(NodeClosed, match=f"while {note.id} was watched"):
        await waiting
