"""The language of a folder, what a program consists of, and versions that are the same in both lock files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from images.contents import NODE_PACKAGES
from reside.build.language import Language, language_of
from reside.build.source import read_source
from reside.build.typescript import outside
from reside.build.typescript_kit import NATIVE
from reside.model.errors import InvalidInput

ROOT = Path(__file__).parents[3]
MANIFEST = """identity: registry.reside.internal/greeter
info: {name: greeter, class: long-running, exclusive: false, scalable: true}
"""


@pytest.mark.parametrize(
    ("names", "language"),
    [
        (("main.py", "helper.ts"), Language.python),
        (("main/__main__.py",), Language.python),
        (("main.ts", "tools.py"), Language.typescript),
    ],
)
def test_the_program_decides_the_language(tmp_path: Path, names: tuple[str, ...], language: Language) -> None:
    make(tmp_path, *names)
    assert language_of(tmp_path) is language


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("main.py", "main.ts"), "has both main.py and main.ts: keep the one that the replica runs"),
        (("main/__main__.py", "main.ts"), "has both main/__main__.py and main.ts"),
        (("index.ts",), "has neither main.py nor main.ts: write the program, or add a Dockerfile"),
    ],
)
def test_a_folder_without_one_program_is_refused(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    make(tmp_path, *names)
    with pytest.raises(InvalidInput, match=message):
        language_of(tmp_path)


def test_a_dockerfile_or_a_contract_needs_no_program(tmp_path: Path) -> None:
    make(tmp_path, "Dockerfile", "replica.yaml")
    (tmp_path / "replica.yaml").write_text(MANIFEST)
    assert read_source(tmp_path, "v1").language is None


def test_installed_packages_are_left_out_beside_a_program_in_typescript_only(tmp_path: Path) -> None:
    make(tmp_path, "main.ts", "node_modules/zod/index.js", "web/node_modules/a.js", "x.tsbuildinfo", "web/page.html")
    (tmp_path / "replica.yaml").write_text(MANIFEST)
    assert read_source(tmp_path, "v1").files() == ["main.ts", "replica.yaml", "web/page.html"]
    (tmp_path / "main.ts").rename(tmp_path / "main.py")
    assert "node_modules/zod/index.js" in read_source(tmp_path, "v1").files()


def test_the_native_module_of_the_image_is_the_one_that_bundles_import() -> None:
    sdk = json.loads((ROOT / "sdk/typescript/package-lock.json").read_text())["packages"]
    image = json.loads((ROOT / "images/jazz/package-lock.json").read_text())["packages"]
    for package in NODE_PACKAGES:
        assert sdk[f"node_modules/{package}"]["version"] == image[f"node_modules/{package}"]["version"]
    assert NATIVE in NODE_PACKAGES


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("main.ts", None),
        ("node_modules/ms/index.js", None),
        ("../../node_modules/@reside/replica/dist/index.js", None),
        ("(disabled):../../../node_modules/jazz-tools/x.js", None),
        ("../../../package.json", "/packages/package.json"),
        ("../app-of-another/data.json", "/packages/sdk/scratch/app-of-another/data.json"),
        ("../../../../root/.docker/config.json", "/root/.docker/config.json"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_a_program_consists_of_its_folder_and_of_packages(name: str, found: str | None) -> None:
    app = Path("/packages/sdk/scratch/app")
    assert outside(["main.ts", name], app, (Path("/packages/sdk"), Path("/packages"))) == found


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
