"""The typed layer and the schemas of jazz-tools (`co.map`, `co.list`, `z.date` …): each reads what the other wrote."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from interop.javascript import Driver, JavaScript
from interop.typed.models import Cat, Dog, Home, Names, Note, Page, Project, Settings, Task, Theme
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer

from reside.jazz import AccountId, Credentials, Group, Node
from reside.jazz.typed import File, ListOf, RecordOf, Text

pytestmark = pytest.mark.anyio

DUE = datetime(2026, 11, 21, 10, 15, 59, 510_000, tzinfo=UTC)
DUE_JS = {"$date": "2026-11-21T10:15:59.510Z"}
WHOLE = {"tasks": {"$each": {"note": True, "project": True}}, "labels": True, "events": True, "days": True}


@pytest.fixture(scope="module")
def typed_driver() -> Iterator[Driver]:
    """Yield the driver of jazz-tools' schemas."""
    with closing(Driver("typed.mjs")) as driver:
        yield driver


@pytest.fixture
async def tools(typed_driver: Driver) -> AsyncIterator[JavaScript]:
    """Yield a client of jazz-tools' schemas without actors."""
    async with typed_driver.lent() as client:
        yield client


@pytest.fixture
async def worker(jazz: JazzServer, tools: JavaScript) -> AccountId:
    """Return an account that jazz-tools has logged in as `js`."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("worker")
    login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
    await tools("login", actor="js", url=jazz.url, **login)
    return credentials.account_id


@pytest.fixture
async def python(nodes: Nodes) -> Node:
    """Return the Python node."""
    return await nodes("python")


@pytest.fixture
async def group(python: Node, worker: AccountId) -> Group:
    """Return a group in which both sides write."""
    made = python.create_group()
    await made.add_member(worker, "admin")
    await python.flush()
    return made


async def _wire(tools: JavaScript, co_id: str) -> Any:
    return await tools("wire", actor="js", id=co_id)


async def test_javascript_reads_a_whole_tree_that_python_wrote(tools: JavaScript, python: Node, group: Group) -> None:
    full = Task(
        title="a", done=True, weight=1.5, due=DUE, nick="A", level="high", score=2, tags=["x"], note=Note(text="n")
    )
    project = Project(name="p", tasks=ListOf([full, Task(title="b", score=None)]), days=ListOf([DUE]))
    project.labels = RecordOf({"one": "1"})
    project.create(group)
    project.events.push({"what": "made"})
    project.tasks[0].project = project
    await python.flush()

    read = await tools("read", actor="js", schema="Project", id=project.id, resolve=WHOLE)
    first, second = read["tasks"]
    assert first.pop("project") == {"id": project.id}
    assert first == {
        "title": "a",
        "done": True,
        "weight": 1.5,
        "due": DUE_JS,
        "nick": "A",
        "level": "high",
        "score": 2,
        "tags": ["x"],
        "note": {"text": "n"},
    }
    assert second == {"title": "b", "done": False, "level": "low", "score": None, "tags": []}
    assert (read["labels"], read["events"], read["days"]) == ({"one": "1"}, [{"what": "made"}], [DUE_JS])


async def test_python_reads_a_whole_tree_that_javascript_wrote(tools: JavaScript, python: Node, group: Group) -> None:
    tasks = [
        {
            "title": "a",
            "done": True,
            "due": DUE_JS,
            "level": "high",
            "score": None,
            "tags": ["x"],
            "note": {"text": "n"},
        },
        {"title": "b", "done": False, "nick": "B", "level": "low", "score": 3, "tags": [], "createdBy": "js"},
    ]
    value = {"name": "p", "tasks": tasks, "labels": {"one": "1"}, "events": [{"what": "made"}], "days": [DUE_JS]}
    made = await tools("create", actor="js", schema="Project", value=value, owner=group.id)
    await tools("flush", actor="js")

    project = await Project.load(python, made, resolve=WHOLE)
    first, second = project.tasks
    assert first.note is not None
    assert (first.title, first.done, first.due, first.nick, first.level) == ("a", True, DUE, None, "high")
    assert (first.score, first.tags, first.note.text, first.project) == (None, ["x"], "n", None)
    assert (second.nick, second.score, second.due, second.created_by, second.note) == ("B", 3.0, None, "js", None)
    assert dict(project.labels.items()) == {"one": "1"}
    assert [item.value for item in project.events] == [{"what": "made"}]
    assert list(project.days) == [DUE]


async def test_both_write_the_same_on_the_wire(tools: JavaScript, python: Node, group: Group) -> None:
    """Missing at first, null for dates and references that are unset, a missing value for undefined."""
    mine = Task(title="a", score=None, tags=["x"]).create(group)
    steps: list[tuple[str, Any, Any]] = [
        ("weight", 1, 1),
        ("weight", None, {"$undefined": True}),
        ("due", DUE, DUE_JS),
        ("due", None, {"$undefined": True}),
        ("nick", "A", "A"),
        ("nick", None, {"$undefined": True}),
        ("note", None, {"$undefined": True}),
        ("score", 2.5, 2.5),
        ("score", None, None),
    ]
    init = {"title": "a", "done": False, "level": "low", "score": None, "tags": ["x"]}
    theirs = await tools("create", actor="js", schema="Task", value=init, owner=group.id)
    for key, value, javascript_value in steps:
        setattr(mine, key, value)
        await tools("set", actor="js", schema="Task", id=theirs, key=key, value=javascript_value)
    await python.flush()
    mine_wire, theirs_wire = await _wire(tools, mine.id), await _wire(tools, theirs)
    assert mine_wire["changes"] == theirs_wire["changes"]
    assert mine_wire["header"].keys() == theirs_wire["header"].keys()
    assert (mine.weight, mine.due, mine.nick, mine.note, mine.score) == (None, None, None, None, None)


@pytest.mark.parametrize("by", ["python", "javascript"])
async def test_a_child_gets_a_group_that_extends_its_containers(
    tools: JavaScript, python: Node, group: Group, by: str
) -> None:
    if by == "python":
        task = Task(title="a", score=None, note=Note(text="n")).create(group)
        await python.flush()
        assert (await tools("read", actor="js", schema="Task", id=task.id, resolve={"note": True}))["note"] == {
            "text": "n"
        }
    else:
        init = {"title": "a", "done": False, "level": "low", "score": None, "tags": [], "note": {"text": "n"}}
        made = await tools("create", actor="js", schema="Task", value=init, owner=group.id)
        await tools("flush", actor="js")
        task = await Task.load(python, made, resolve=lambda task: task.note)
    assert task.note is not None
    assert task.note.text == "n"
    assert task.note.group.id != group.id
    assert task.note.group.parents() == {group.id: "extend"}


async def test_children_that_are_added_later_get_such_a_group_too(
    tools: JavaScript, python: Node, group: Group
) -> None:
    project = Project(name="p", tasks=ListOf()).create(group)
    await python.flush()
    task = {"title": "js", "done": False, "level": "low", "score": None, "tags": []}
    await tools(
        "push", actor="js", schema="Project", id=project.id, path=["tasks"], value=task, resolve={"tasks": True}
    )
    async with project.watch(lambda project: project.tasks.each) as changes:
        async for _ in changes:
            if len(project.tasks):
                break
    project.tasks.append(Task(title="python", score=None))
    owners = [task.group for task in project.tasks]
    assert [owner.parents() for owner in owners] == [{project.tasks.group.id: "extend"}] * 2
    await python.flush()
    titles = {"select": ["tasks", "*", "title"], "expected": ["js", "python"]}
    js = {"actor": "js", "schema": "Project", "id": project.id, "resolve": {"tasks": {"$each": True}}}
    await tools("until", **js, **titles)


async def test_a_change_deep_in_a_tree_is_seen_on_both_sides(tools: JavaScript, python: Node, group: Group) -> None:
    project = Project(name="p", tasks=ListOf([Task(title="a", score=None)])).create(group)
    await python.flush()
    task = project.tasks[0]
    async with Project.subscribe(python, project.id, resolve=lambda project: project.tasks.each.note) as changes:
        first = await anext(changes)
        assert first.tasks[0].note is None
        await tools("set", actor="js", schema="Task", id=task.id, key="note", value={"text": "from js"})
        async for state in changes:
            note = state.tasks[0].note
            if note is not None:
                break
        assert note is not None
        assert note.text == "from js"
    note.text = "from python"
    expected = {"title": "a", "done": False, "level": "low", "score": None, "tags": [], "note": {"text": "from python"}}
    await tools("until", actor="js", schema="Task", id=task.id, resolve={"note": True}, expected=expected)


async def test_texts_are_edited_on_both_sides(tools: JavaScript, python: Node, group: Group) -> None:
    page = Page(body=Text("Hello from Python")).create(group)
    await python.flush()
    js = {"actor": "js", "schema": "Page", "resolve": {"body": True}}
    assert await tools("read", **js, id=page.id) == {"body": "Hello from Python"}
    made = await tools("create", **js, value={"body": "Hello from JavaScript"}, owner=group.id)
    await tools("flush", actor="js")
    theirs = await Page.load(python, made, resolve=lambda page: page.body)
    assert str(theirs.body) == "Hello from JavaScript"
    theirs.body.apply("Hello to JavaScript")
    await python.flush()
    await tools("until", **js, id=made, expected={"body": "Hello to JavaScript"})


async def test_files_are_read_on_both_sides(tools: JavaScript, python: Node, group: Group) -> None:
    page = Page(body=Text(""), image=File(b"from Python", mime_type="text/plain", name="p.txt")).create(group)
    await python.flush()
    read = await tools("read", actor="js", schema="Page", id=page.id, resolve={"image": True})
    image = {
        "mimeType": "text/plain",
        "fileName": "p.txt",
        "totalSizeBytes": 11,
        "finished": True,
        "text": "from Python",
    }
    assert read["image"] == image
    made = await tools("file", actor="js", owner=group.id, text="from JavaScript", name="j.txt")
    await tools("flush", actor="js")
    theirs = await File.load(python, made)
    assert theirs.info is not None
    assert (await theirs.read(), theirs.info.name, theirs.info.mime_type) == (b"from JavaScript", "j.txt", "text/plain")
    second = Page(body=Text(""), image=theirs).create(group)
    await python.flush()
    read = await tools("read", actor="js", schema="Page", id=second.id, resolve={"image": True})
    assert read["image"]["text"] == "from JavaScript"


@pytest.mark.parametrize("unique", ["settings", {"of": "alice", "kind": "settings"}])
async def test_unique_values_and_their_children_are_the_same_on_both_sides(
    tools: JavaScript, python: Node, group: Group, unique: Any
) -> None:
    value = {"language": "en", "theme": {"color": "red"}}
    js = {"actor": "js", "schema": "Settings", "owner": group.id, "unique": unique}
    assert await tools("loadUnique", **js) is None
    assert await Settings.load_unique(group, unique) is None
    mine = Settings(language="de", theme=Theme(color="blue"))
    made = await mine.get_or_create_unique(group, unique, resolve=lambda settings: settings.theme)
    await python.flush()
    assert await tools("unique", **js, value=value, resolve={"theme": True}) == made.id
    assert await tools("loadUnique", **js, resolve={"theme": True}) == {"language": "de", "theme": {"color": "blue"}}
    header = (await _wire(tools, made.theme.id))["header"]
    child = f"{unique}@@theme" if isinstance(unique, str) else {**unique, "_field": "theme"}
    assert (header["uniqueness"], header["ruleset"]["group"]) == (child, group.id)
    assert (await _wire(tools, made.id))["meta"] == [{"fww": "init"}]


async def test_python_uses_the_unique_value_that_javascript_created(
    tools: JavaScript, python: Node, group: Group
) -> None:
    value = {"language": "en", "theme": {"color": "red"}}
    made = await tools("unique", actor="js", schema="Settings", owner=group.id, unique="settings", value=value)
    await tools("flush", actor="js")
    draft = Settings(language="de", theme=Theme(color="blue"))
    mine = await draft.get_or_create_unique(group, "settings", resolve={"theme": True})
    assert (mine.id, mine.language, mine.theme.color) == (made, "en", "red")
    assert draft.is_draft
    names = await tools("unique", actor="js", schema="Names", owner=group.id, unique="names", value=["a", "b"])
    await tools("flush", actor="js")
    found = await Names.load_unique(group, "names")
    assert found is not None
    assert (found.id, list(found)) == (names, ["a", "b"])
    assert (await Names(["x"]).get_or_create_unique(group, "others")).raw.as_list() == ["x"]


async def test_unions_are_distinguished_by_their_literals(tools: JavaScript, python: Node, group: Group) -> None:
    home = Home(pet=Dog(tricks=["sit"])).create(group)
    await python.flush()
    read = await tools("read", actor="js", schema="Home", id=home.id, resolve={"pet": True})
    assert read == {"pet": {"type": "dog", "tricks": ["sit"]}}
    made = await tools("create", actor="js", schema="Home", value={"pet": {"type": "cat", "lives": 9}}, owner=group.id)
    await tools("flush", actor="js")
    theirs = await Home.load(python, made, resolve={"pet": True})
    assert isinstance(theirs.pet, Cat)
    assert theirs.pet.lives == 9
