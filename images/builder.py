"""Build the images that a registry does not have yet, and push them.

Every image is tagged `in-<hash of its inputs>`. An image whose tag is in the registry is not built. Images with a
Dockerfile are built by Docker, exported into the cache, and pushed from there: a Docker daemon is started only if the
cache does not have an image that is missing. Contents are collected in parallel; images are built in order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio

from images import exports
from images.daemon import Daemon, Item, timed
from images.errors import ImageBuildError
from images.recipes import CHECKOUT, Recipe, contract_labels, recipes
from reside.build import cache
from reside.build.context import Context
from reside.build.daemon import private_dockerd
from reside.model.constants import RESIDE_REGISTRY
from reside.registry import FileBlob, ImageNotFound, ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

LATEST = "latest"  # for people and for `reside build`; deployments use digests


def build_images(
    registry_push: str | RegistryClient,
    only: Collection[str] | None = None,
    progress: Callable[[str], None] = lambda _line: None,
    checkout: Path = CHECKOUT,
) -> dict[str, str]:
    """Build and push ReSide's images that are missing in a registry.

    It must not be called from a running event loop: call it in a thread.

    Args:
        registry_push: `host:port` of the registry, on loopback (plain HTTP), or a client that locates the images.
        only: names of the images, whose parents are built as well; None: all.
        progress: called with one line for each step.
        checkout: the folder that contains `images/`.

    Returns:
        name of each image → `registry.reside.internal/<repository>@<digest>`.

    Raises:
        ImageBuildError: an image was not built, or `only` names an unknown one.
        RegistryError: the registry can't be used.
        LocalError: a tool is missing, or a Docker daemon can't be started.
    """
    contracts = contract_labels()
    known = recipes(checkout)
    names = list(only) if only is not None else [*known, *contracts]
    for name in names:
        if name not in known and name not in contracts:
            raise ImageBuildError(name, f"there is no such image; choose one of {', '.join([*known, *contracts])}")
    local = registry_push if isinstance(registry_push, str) else None
    client = client_for(registry_push) if isinstance(registry_push, str) else registry_push
    with timed("inputs compared with the registry", progress):
        items = _items(known, [name for name in names if name in known])
        digests = anyio.run(_present, client, items.values())
    missing = [item for name, item in items.items() if name not in digests]
    by_docker = {name: item for name, item in items.items() if item.recipe.dockerfile is not None}
    to_push = [item for item in missing if item.recipe.name in by_docker]
    if any(exports.find(item.tag) is None for item in to_push):
        with private_dockerd(progress) as docker:
            # Docker has neither the authorities nor the passwords of another registry, so it pulls nothing from there
            present = {} if local is None else digests
            _export_missing(by_docker, present, Daemon(docker, local or "", progress))
    for item in to_push:
        _push(client, item, progress)
    for item in missing:
        if item.recipe.dockerfile is None:
            _extend(client, item, items, progress)
    if missing:
        digests = anyio.run(_present, client, items.values())
    return anyio.run(_references, client, names, items, digests, contracts)


def client_for(local: str) -> RegistryClient:
    """Return a client of the registry at `host:port` on loopback."""
    return RegistryClient({RESIDE_REGISTRY: f"http://{local}"})


async def _references(
    client: RegistryClient,
    names: Iterable[str],
    items: Mapping[str, Item],
    digests: Mapping[str, str],
    contracts: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """Push the required contracts, tag all required images `latest`, and return their references by digest."""
    found: dict[str, str] = {}
    for name in names:
        if name in items:
            pinned = items[name].reference.pinned(digests[name])
            await client.tag(pinned, LATEST)
        else:
            reference = ImageReference(RESIDE_REGISTRY, f"reside/contracts/{name}", LATEST)
            pinned = reference.pinned(await client.push_label_image(reference, contracts[name]))
        found[name] = str(pinned)
    return found


def _items(known: Mapping[str, Recipe], names: Iterable[str]) -> dict[str, Item]:
    """Return the required images and their ancestors, parents first."""
    needed: set[str] = set()
    for name in names:
        step: str | None = name
        while step is not None:
            needed.add(step)
            step = known[step].parent
    keys: dict[str, str] = {}
    for name, recipe in known.items():
        if name in needed:
            keys[name] = recipe.key(keys[recipe.parent] if recipe.parent else "")
    below = {name: known[parent].repository for name in keys if (parent := known[name].parent)}
    return {name: Item(known[name], f"in-{key[:32]}", below.get(name)) for name, key in keys.items()}


async def _present(client: RegistryClient, items: Iterable[Item]) -> dict[str, str]:
    """Return the digests of the images that the registry has."""
    found: dict[str, str] = {}
    for item in items:
        try:
            found[item.recipe.name] = await client.resolve(item.reference)
        except ImageNotFound:
            continue
    return found


def _export_missing(items: Mapping[str, Item], present: Collection[str], daemon: Daemon) -> None:
    """Build and export the images with Dockerfiles that neither the registry nor the cache has."""
    # Another build may have exported images while this one waited for the daemon
    exported = {name for name, item in items.items() if exports.find(item.tag) is not None}
    to_export = [item for name, item in items.items() if name not in present and name not in exported]
    if not to_export:
        return
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(_scratch()))
        to_build = _to_build(items, present, exported, daemon)
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=4, thread_name_prefix="image"))
        contexts = {name: pool.submit(_stage, items[name], scratch, daemon.progress) for name in to_build}
        for name in to_build:
            parent = items[name].recipe.parent
            daemon.build(items[name], items[parent].local if parent else "", contexts[name].result())
        layers = scratch / "layers"
        layers.mkdir()
        daemon.export(to_export, layers)
        daemon.remove_old(list(items.values()))


def _to_build(
    items: Mapping[str, Item], present: Collection[str], exported: Collection[str], daemon: Daemon
) -> list[str]:
    """Return the images to build; pull their parents that are in the registry but not in the daemon."""
    found: list[str] = []
    for name in reversed(list(items)):  # children first
        is_parent = any(items[child].recipe.parent == name for child in found)
        is_available = name in present or name in exported
        if (is_available and not is_parent) or daemon.has(items[name]):
            continue
        if name in present:
            daemon.pull(items[name])
        else:
            found.append(name)
    return found[::-1]


def _push(client: RegistryClient, item: Item, progress: Callable[[str], None]) -> None:
    """Push an exported image under the tag of its inputs; layers are not compressed, see `reside.build.archive`."""
    name = item.recipe.name
    with timed(f"{name}: pushed", progress):
        image = exports.find(item.tag)
        if image is None:
            raise ImageBuildError(name, "its export was removed from the cache during the build: build again")
        below = ImageReference(RESIDE_REGISTRY, item.below) if item.below else None
        anyio.run(client.push_image, item.reference, image.config, image.layers, below)


def _extend(client: RegistryClient, item: Item, items: Mapping[str, Item], progress: Callable[[str], None]) -> None:
    """Assemble an image in the registry: its parent, a layer of its content if it has any, and its extension."""
    recipe = item.recipe
    if recipe.parent is None:
        raise ImageBuildError(recipe.name, "its recipe has neither a Dockerfile nor a parent: set one of them")
    with timed(f"{recipe.name}: assembled", progress), _scratch() as scratch:
        layer = FileBlob.of(_stage(item, Path(scratch), progress)) if recipe.content else None
        anyio.run(client.extend, items[recipe.parent].reference, item.reference, layer, recipe.extension)


def _scratch() -> TemporaryDirectory[str]:
    """Return a temporary folder; if this build is killed, a later one removes it."""
    return TemporaryDirectory(prefix=cache.INCOMPLETE, dir=cache.folder())


def _stage(item: Item, scratch: Path, progress: Callable[[str], None]) -> Path:
    """Write the content of an image into a tar: a build context if it has a Dockerfile, otherwise a layer."""
    recipe = item.recipe
    path = scratch / f"{recipe.name}.tar"
    with timed(f"{recipe.name}: contents collected", progress), path.open("wb") as file:
        context = Context(file)
        if recipe.dockerfile is not None:
            context.data("Dockerfile", recipe.dockerfile.encode())
        if recipe.content is not None:
            recipe.content.write(context, lambda line: progress(f"{recipe.name}: {line}"))
        context.close()
    return path
