"""What the repository cites is in the repository: pages, their sections, links, and the code that pages name."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[3]
_TEXTS: Final = (".py", ".go", ".mjs", ".md", ".toml", ".yaml", ".yml", ".txt", "Makefile", "Dockerfile")
_PAGE = re.compile(r"(?<![\w./-])((?:[\w.-]+/)*[\w-]+\.md)\b(?!\")")
_SECTION = re.compile(r"docs/([\w-]+\.md),\s+(?:section (\d+)|\"([^\"]+)\")")
_OLD_STYLE = re.compile(r"\.md §|\.\./shared|/work/")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE_PATH = re.compile(
    r"(?<![\w./-])((?:reside|stacks|policy|images|tools|engine|tests|benchmarks|examples)/[\w./*-]*\w/?)"
)
_MODULE = re.compile(r"(?<![\w./-])(?!reside\.io\b)((?:reside|stacks|policy)(?:\.\w+)+)")


@cache
def tracked() -> tuple[str, ...]:
    """Return the tracked text files, except for this test, which contains what it forbids."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    me = str(Path(__file__).relative_to(ROOT))
    skipped = {me, "mkdocs.yml"}  # MkDocs itself checks what it names, and against which folder
    return tuple(path for path in listed.splitlines() if path.endswith(_TEXTS) and path not in skipped)


def pages() -> list[str]:
    """Return the tracked Markdown pages."""
    return [path for path in tracked() if path.endswith(".md")]


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text()


def found(pattern: re.Pattern[str], paths: tuple[str, ...] | list[str]) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield each match with its place, `<path>:<line>`."""
    for path in paths:
        text = text_of(path)
        for match in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}", match


def anchor(heading: str) -> str:
    """Return the name that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(page: str) -> list[str]:
    return _HEADING.findall(_FENCE.sub("", text_of(page)))


def test_pages_that_are_cited_are_in_the_repository() -> None:
    missing = [
        f"{place}: {match.group(1)}"
        for place, match in found(_PAGE, tracked())
        if not (ROOT / match.group(1)).is_file()
        and not (ROOT / place.split(":")[0]).parent.joinpath(match.group(1)).is_file()
    ]
    assert missing == []


def test_sections_that_are_cited_are_in_their_pages() -> None:
    missing = []
    for place, match in found(_SECTION, tracked()):
        page, number, title = match.groups()
        known = headings(f"docs/{page}")
        if not any(heading == title if title else heading.startswith(f"{number}. ") for heading in known):
            missing.append(f"{place}: {match.group()}")
    assert missing == []


def test_no_page_outside_of_the_repository_is_cited() -> None:
    assert [place for place, _ in found(_OLD_STYLE, tracked())] == []


def test_links_between_pages_resolve() -> None:
    links = [(page, target) for page in pages() for target in _LINK.findall(_FENCE.sub("", text_of(page)))]
    assert [
        f"{page}: {target}" for page, target in links if not is_external(target) and not resolves(page, target)
    ] == []


def is_external(target: str) -> bool:
    return re.match(r"[a-z]+:", target) is not None


def resolves(page: str, target: str) -> bool:
    """Return whether a relative link leads to a file, and its fragment to a heading of that file."""
    name, _, fragment = target.partition("#")
    path = ((ROOT / page).parent / name).resolve() if name else ROOT / page
    if not fragment or not path.is_file():
        return path.exists()
    return fragment in map(anchor, headings(str(path.relative_to(ROOT))))


def test_files_and_folders_that_pages_name_exist() -> None:
    missing = [
        f"{place}: {match.group(1)}"
        for place, match in found(_CODE_PATH, pages())
        if not any(ROOT.glob(match.group(1)))
    ]
    assert missing == []


def test_modules_and_names_that_pages_name_exist() -> None:
    missing = [
        f"{place}: {match.group(1)}" for place, match in found(_MODULE, pages()) if not is_defined(match.group(1))
    ]
    assert missing == []


def is_defined(dotted: str) -> bool:
    """Return whether a dotted name is a package, a module, or a name that one of them contains."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        module = next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
        if module is not None:
            return all(re.search(rf"\b{name}\b", module.read_text()) for name in parts[count : count + 1])
    return False
