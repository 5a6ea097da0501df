"""The reader of documentation pages that are executed."""

from __future__ import annotations

import pytest
from support.tutorial import Step, steps

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
