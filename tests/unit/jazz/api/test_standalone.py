"""`reside.jazz` is independent: it imports nothing else of ReSide, neither in its source nor at run time."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import reside.jazz

PACKAGE = Path(reside.jazz.__file__).parent
OWN = {"reside", "reside.jazz"}


def _imported(file: Path) -> set[str]:
    """Return the absolute names of the modules that a file of the package imports, at any place in it."""
    package = ["reside", "jazz", *file.relative_to(PACKAGE).parent.parts]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            found.add(".".join([*base, *([node.module] if node.module else [])]))
    return found


def test_no_file_of_it_imports_another_package() -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 40
    for file in files:
        rooms = {name for name in _imported(file) if name.partition(".")[0] == "reside"}
        assert {name for name in rooms if name != "reside.jazz" and not name.startswith("reside.jazz.")} == set(), file


def test_using_all_of_it_imports_no_other_package_of_reside() -> None:
    program = """
import pkgutil, sys
import reside.jazz
for module in pkgutil.walk_packages(reside.jazz.__path__, "reside.jazz."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
import reside.jazz.__main__
print(*[name for name in sys.modules if name.partition(".")[0] in ("reside", "policy", "stacks", "pulumi")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"reside.jazz.typed.model", "reside.jazz.__main__"} < loaded
    assert {name for name in loaded - OWN if not name.startswith("reside.jazz.")} == set()


_UNUSED = ["pydantic", "sqlite3", "websockets", "reside.jazz.server", "reside.jazz.inbox", "reside.jazz.tokens"]
"""What many programs do not use, or not until they connect."""


@pytest.mark.parametrize("name", _UNUSED)
def test_an_import_does_not_load_what_is_not_used(name: str, modules_of_import: set[str]) -> None:
    assert {"reside.jazz.node.node", "asyncio"} < modules_of_import
    assert name not in modules_of_import


def test_an_import_takes_less_than_20_mib() -> None:
    program = """
from pathlib import Path
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1])
before = resident()
import reside.jazz, resource
print((resident() - before) * resource.getpagesize())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 20 * 1024 * 1024


@pytest.fixture(scope="module")
def modules_of_import() -> set[str]:
    """Return the names of the modules that are loaded after an import of the package."""
    program = "import sys, reside.jazz; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
