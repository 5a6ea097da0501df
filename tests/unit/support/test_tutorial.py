"""The reader of documentation pages that are executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.tutorial import Shell, Step, in_tab, section, steps

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """\
# Page

```
not run
```

`a/b.txt`:

```yaml
x: 1
```

```sh
cat a/b.txt
```

Words.

```text
x: …
```

```sh
true
```
"""


def test_a_page_is_files_scripts_and_expected_lines() -> None:
    assert steps(PAGE) == [Step("cat a/b.txt\n", {"a/b.txt": "x: 1\n"}, ["x: …"]), Step("true\n")]


@pytest.mark.parametrize(
    ("expected", "output", "shown"),
    [
        ([], "", True),
        (["a"], "a\n", True),
        (["a"], "ab\n", False),
        (["a…"], "x\nab\n", True),
        (["a", "b"], "b\na\n", False),
        (["a", "b"], "a\nc\nb\n", True),
        (["… quoter … 3 … running …"], "4   quoter   3   running   3s  66c8b986b05f\n", True),
        (["a.c"], "abc\n", False),
    ],
)
def test_lines_are_expected_in_their_order(expected: list[str], output: str, shown: bool) -> None:
    assert Step("", {}, expected).is_shown(output) is shown


SECTIONS = """\
# Page

## First

```sh
# not a heading
```

### Inner

Words.

## Second

### Inner
"""


def test_a_section_ends_at_the_next_heading() -> None:
    assert section(SECTIONS, "First") == "\n```sh\n# not a heading\n```\n\n"


@pytest.mark.parametrize("heading", ["Third", "Inner"])
def test_a_section_has_one_name(heading: str) -> None:
    with pytest.raises(LookupError, match=heading):
        section(SECTIONS, heading)


def test_a_shell_keeps_its_folder_and_its_variables(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"PATH": "/usr/bin:/bin"}, tmp_path)
    assert shell.run("mkdir inner && cd inner\nexport A='b\nc=d'\nread answer; echo $answer") == "y\n"
    assert shell.run('echo "$A"; pwd') == f"b\nc=d\n{tmp_path}/inner\n"


def test_a_shell_ends_at_the_first_command_that_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="echo before"):
        Shell(tmp_path, {"PATH": "/usr/bin:/bin"}, tmp_path).run("echo before\nfalse | true\necho after")


def test_a_reader_follows_one_tab() -> None:
    page = """# Page

=== "Python"

    `a.py`:

    ```python
    def f() -> None:
        pass

    f()
    ```

    ```sh
    true
    ```

=== "TypeScript"

    `a.ts`:

    ```ts
    f();
    ```

Words.

    indented

```sh
run
```
"""
    python, typescript = (steps(in_tab(page, tab)) for tab in ("Python", "TypeScript"))
    assert [(step.files, step.script) for step in python] == [
        ({"a.py": "def f() -> None:\n    pass\n\nf()\n"}, "true\n"),
        ({}, "run\n"),
    ]
    assert [(step.files, step.script) for step in typescript] == [({"a.ts": "f();\n"}, "run\n")]
    assert "\n    indented\n" in in_tab(page, "Python")
    assert in_tab(PAGE, "Python") == PAGE
