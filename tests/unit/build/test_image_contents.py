"""The contents of images of ReSide's own code: what is meant to be built, and no other file of the checkout."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from images.contents import CODE_FOLDERS, JAZZ_FILES, Code, JazzServer
from reside.build.context import Context

ROOT = Path(__file__).parents[3]
FILES = {
    "Pulumi.yaml": "name: reside",
    "__main__.py": "print()",
    "images/alpha/manifest.yaml": "type: replica",
    **{f"images/jazz/{name}": "{}" for name in JAZZ_FILES},
    "policy/PulumiPolicy.yaml": "runtime: python",
    "reside/__init__.py": "",
    "reside/cli/declarations.json": "{}",
    "reside/model/names.py": "NAME = 1",
    "reside/policy/rules.py": "RULES = {}",
    "reside/py.typed": "",
    "stacks/__init__.py": "",
}
STRAY = (
    "images/jazz/node_modules/yaml/manifest.yaml",
    "images/jazz/package.json~",
    "images/jazz/settings.json",
    "reside/.DS_Store",
    "reside/.ipynb_checkpoints/names-checkpoint.py",
    "reside/__pycache__/names.cpython-311.pyc",
    "reside/model/#names.py#",
    "reside/model/.#names.py",
    "reside/model/.names.py.swp",
    "reside/model/4913",
    "reside/model/names.py.tmp.4711",
    "reside/model/names.py~",
    "reside/model/names.pyc",
    "reside/names.cpython-311-x86_64-linux-gnu.so",
    "stacks/Pulumi.default.yaml",
)
"""Byte code, editors' files, the draft of a file, and a stack's settings, which Pulumi writes."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path / name, text)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def layer(content: Code) -> dict[str, bytes]:
    """Return the files of the image's layer, without byte code."""
    file = io.BytesIO()
    context = Context(file)
    content.write(context, lambda _line: None)
    context.close()
    file.seek(0)
    with tarfile.open(fileobj=file) as tar:
        found = {member.name: tar.extractfile(member) for member in tar if not member.name.endswith(".pyc")}
        return {name.removeprefix("opt/reside/"): reader.read() for name, reader in found.items() if reader}


@pytest.mark.parametrize("stray", STRAY)
def test_untracked_files_in_a_checkout_change_no_image(checkout: Path, stray: str) -> None:
    code, jazz = Code(checkout).key(), JazzServer(checkout).key()
    write(checkout / stray, "stray")
    assert (Code(checkout).key(), JazzServer(checkout).key()) == (code, jazz)


def test_a_dangling_link_is_not_a_module(checkout: Path) -> None:
    """Emacs marks a file that is being edited by such a link; other editors leave one when they are killed."""
    before = Code(checkout).key()
    (checkout / "reside/model/lock.py").symlink_to("somebody@somewhere.4711")
    assert Code(checkout).key() == before


@pytest.mark.parametrize("changed", ["__main__.py", "images/alpha/manifest.yaml", "reside/model/names.py"])
def test_a_changed_file_changes_the_image(checkout: Path, changed: str) -> None:
    before = Code(checkout).key()
    (checkout / changed).write_text("changed")
    assert Code(checkout).key() != before


def test_a_new_module_changes_the_image_before_it_is_committed(checkout: Path) -> None:
    before = Code(checkout).key()
    write(checkout / "reside/model/fresh.py", "")
    assert Code(checkout).key() != before


def test_the_built_content_is_the_content_that_was_hashed(checkout: Path) -> None:
    """A file that is saved between the two counts for the next build only."""
    code = Code(checkout)
    before = code.key()
    write(checkout / "reside/model/names.py", "NAME = 2")
    assert layer(code)["reside/model/names.py"] == b"NAME = 1"
    assert code.key() == before


def test_all_committed_files_are_built() -> None:
    """If a package needs files of another kind, CODE_FILES must name them.

    A stack's settings and the files of the distribution reside-jazz are not built.
    """
    listed = subprocess.run(["git", "ls-files", *CODE_FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True)
    committed = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    jazz = {f"reside/jazz/{name}" for name in ("CHANGELOG.md", "LICENSE", "README.md", "py.typed", "pyproject.toml")}
    assert committed - Code(ROOT)._files.keys() == {"stacks/Pulumi.local.yaml", *jazz}


def test_the_sync_server_has_exactly_the_modules_that_it_imports() -> None:
    folder = ROOT / "images/jazz"
    found, queue = set[str](), ["server.mjs"]
    while queue:
        name = queue.pop()
        found.add(name)
        imported = re.findall(r'from "\./([a-z_]+\.mjs)"', (folder / name).read_text())
        queue += [other for other in imported if other not in found]
    assert {name for name in JAZZ_FILES if name.endswith(".mjs")} == found
