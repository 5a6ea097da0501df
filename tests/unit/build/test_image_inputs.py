"""An image is built again if one of its inputs has changed, and only then."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from images import builder, debootstrap
from images.recipes import Recipe
from reside.build import cache
from reside.build.archive import read_archive
from reside.build.context import Context, digest
from reside.local.errors import LocalError
from reside.registry import Extension

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Text:
    """Content that is one text."""

    text: str

    def key(self) -> str:
        """Return its hash."""
        return digest(self.text)

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Write it into one file."""
        context.data("text", self.text.encode())


BASE = Recipe("base", "reside/base", content=Text("a"), dockerfile="FROM scratch")
CHILD = Recipe("child", "reside/child", "base", extension=Extension({"a": "b"}))
OTHER = Recipe("other", "reside/other", dockerfile="FROM scratch")
KNOWN = {recipe.name: recipe for recipe in (BASE, CHILD, OTHER)}


def tags(known: dict[str, Recipe]) -> dict[str, str]:
    return {name: item.tag for name, item in builder._items(known, known).items()}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (replace(BASE, content=Text("b")), {"base", "child"}),
        (replace(BASE, dockerfile="FROM scratch\nUSER 1"), {"base", "child"}),
        (replace(CHILD, extension=Extension({"a": "c"})), {"child"}),
        (replace(OTHER, repository="reside/moved"), {"other"}),
        (BASE, set()),
    ],
)
def test_a_change_affects_the_image_and_those_based_on_it(changed: Recipe, expected: set[str]) -> None:
    before, after = tags(KNOWN), tags(KNOWN | {changed.name: changed})
    assert {name for name in before if before[name] != after[name]} == expected


def test_the_base_of_an_image_is_built_as_well_and_first() -> None:
    assert list(builder._items(KNOWN, ["child"])) == ["base", "child"]


class Store:
    """A daemon that has some images; records what is pulled."""

    def __init__(self, *has: str) -> None:
        self._has = has
        self.pulled: list[str] = []

    def has(self, item: builder.Item) -> bool:
        """Return whether the image was registered."""
        return item.recipe.name in self._has

    def pull(self, item: builder.Item) -> None:
        """Record it."""
        self.pulled.append(item.recipe.name)


@pytest.mark.parametrize(
    ("present", "exported", "local", "built", "pulled"),
    [
        ((), (), (), ["base", "above"], []),
        ((), (), ("base",), ["above"], []),
        (("base",), (), (), ["above"], ["base"]),
        (("base",), (), ("base",), ["above"], []),
        (("base", "above"), (), (), [], []),
        ((), (), ("base", "above"), [], []),
        (("above",), (), (), ["base"], []),
        ((), ("base",), (), ["base", "above"], []),
        ((), ("base",), ("base",), ["above"], []),
        (("base",), ("base",), (), ["above"], ["base"]),
        ((), ("above",), (), ["base"], []),
        (("base",), ("above",), (), [], []),
    ],
)
def test_only_images_that_are_available_nowhere_are_built(
    present: tuple[str, ...], exported: tuple[str, ...], local: tuple[str, ...], built: list[str], pulled: list[str]
) -> None:
    items = builder._items({"base": BASE, "above": replace(CHILD, name="above", dockerfile="FROM base")}, ["above"])
    store = Store(*local)
    assert builder._to_build(items, present, exported, store) == built
    assert store.pulled == pulled


def test_a_mirrors_password_is_not_shown() -> None:
    said = "I: Retrieving http://user:hunter2@debian.example.org/debian/a@b and file:/srv/a@b"
    expected = "I: Retrieving http://debian.example.org/debian/a@b and file:/srv/a@b"
    assert debootstrap._without_credentials(said) == expected


def test_a_folder_that_another_build_removes_during_a_cleanup_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dangling link simulates an entry of a folder's list that was renamed a moment later."""
    monkeypatch.setenv("RESIDE_CACHE", str(tmp_path))
    (cache.folder() / f"{cache.INCOMPLETE}x").symlink_to(tmp_path / "nowhere")
    assert cache.cached("thing", "key", lambda folder: (folder / "a").touch()).name == "thing-key"


def test_a_context_is_the_same_for_the_same_content(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "inner/run").write_text("x")
    (tree / "inner/run").chmod(0o700)
    (tree / "link").symlink_to("inner/run")
    written = []
    for _ in range(2):
        buffer = io.BytesIO()
        context = Context(buffer)
        context.tree("files", tree)
        context.close()
        written.append(buffer.getvalue())
    assert written[0] == written[1]
    with tarfile.open(fileobj=io.BytesIO(written[0])) as tar:
        found = {member.name: (member.mode, member.linkname) for member in tar}
    assert found == {
        "files": (0o755, ""),
        "files/inner": (0o755, ""),
        "files/inner/run": (0o755, ""),
        "files/link": (0o777, "inner/run"),
    }


def test_layers_of_a_saved_image_are_read_even_if_they_are_links(tmp_path: Path) -> None:
    config = json.dumps({"rootfs": {"diff_ids": ["sha256:1", "sha256:2"]}}).encode()
    entry = {"Config": "c.json", "RepoTags": ["reside/a:1"], "Layers": ["x/layer.tar", "y/layer.tar"]}
    path, folder = tmp_path / "saved.tar", tmp_path / "layers"
    folder.mkdir()
    with path.open("wb") as file:
        context = Context(file)
        context.data("c.json", config)
        context.data("z/layer.tar", b"first")
        context.link("x/layer.tar", "../z/layer.tar")
        context.data("y/layer.tar", b"second")
        context.data("manifest.json", json.dumps([entry]).encode())
        context.close()
    with path.open("rb") as archive:
        image = read_archive(archive, folder)["reside/a:1"]
    assert image.config == config
    assert [(layer.digest, layer.size) for layer in image.layers] == [("sha256:1", 5), ("sha256:2", 6)]
    with image.layers[0].open() as reader:
        assert reader.read() == b"first"


def test_an_invalid_archive_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="can't be read"):
        read_archive(io.BytesIO(b"no tar"), tmp_path)
