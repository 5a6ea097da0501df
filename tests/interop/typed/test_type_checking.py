"""What a strict type checker infers for typed values: fields, items, and the paths of a resolve."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
_PROGRAM = """
from datetime import datetime
from typing import assert_type

from reside.jazz import Group, Node
from reside.jazz.typed import CoMapModel, FeedOf, ListOf, RecordOf, Text, field, tolerate


class Project(CoMapModel):
    name: str
    tasks: ListOf["Task"]
    owners: RecordOf[str] = field(default_factory=RecordOf)
    log: FeedOf[int] = field(default_factory=FeedOf)


class Task(CoMapModel):
    title: str
    done: bool = False
    due: datetime | None = None
    parent: "Task | None" = None
    notes: Text | None = None


async def right(node: Node, group: Group) -> None:
    made = Project(name="p", tasks=ListOf([Task(title="t")])).create(group)
    assert_type(made, Project)
    assert_type(made.tasks[0].due, datetime | None)
    assert_type(made.tasks[:1], list[Task])
    assert_type([item.value for item in made.log], list[int])
    assert_type(made.owners["a"], str)
    made.tasks[0].done = True
    loaded = await Project.load(node, "co_z", resolve=lambda p: (tolerate(p.tasks.each.notes), p.log))
    assert_type(loaded, Project)
    async with Task.subscribe(node, "co_z", resolve=lambda t: t.parent and t.parent.notes) as states:
        async for state in states:
            assert_type(state, Task)
    found = await Project.load_unique(group, "name")
    assert_type(found, Project | None)


async def wrong(node: Node, group: Group) -> None:
    Project(name="p")  # refused: call-arg
    Project("p", ListOf())  # refused: call-arg
    Task(titel="t")  # refused: call-arg
    Task(title=1)  # refused: arg-type
    task = Task(title="t")
    task.done = "yes"  # refused: assignment
    task.titel  # refused: attr-defined
    Project(name="p", tasks=ListOf(["t"]))  # refused: list-item
    project = Project(name="p", tasks=ListOf())
    project.tasks.append("t")  # refused: arg-type
    project.owners["a"] = 1  # refused: assignment
    project.log.push("x")  # refused: arg-type
    await Project.load(node, "co_z", resolve=lambda p: p.task)  # refused: attr-defined
    await Project.load(node, "co_z", resolve=lambda p: p.tasks.each.note)  # refused: attr-defined
    task.parent.title  # refused: union-attr
"""


async def test_wrong_code_and_nothing_else_is_refused_by_the_type_checker(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "--hide-error-context"),
        *("--cache-dir", str(ROOT / ".mypy_cache"), str(program)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    found = {(int(line), code) for line, code in re.findall(r"program\.py:(\d+): error: .*\[([a-z-]+)\]", out.decode())}
    lines = enumerate(_PROGRAM.splitlines(), 1)
    expected = {(number, line.partition("# refused: ")[2]) for number, line in lines if "# refused: " in line}
    assert found == expected, out.decode()
