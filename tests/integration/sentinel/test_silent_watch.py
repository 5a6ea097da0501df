"""A watch whose connection is lost silently sees what happened meanwhile, on a new connection to a real API server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import yaml
from support.eventually import eventually
from support.sentinel import kubectl

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.kinds import BY_KIND
from reside.sentinel.guard import watch
from reside.sentinel.guard.api import connect
from reside.sentinel.guard.cache import ObjectCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


class Relay:
    """Forwards connections to an API server; those that exist can be made silent, without being closed."""

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.silent: set[int] = set()
        self.connections = 0

    def silence(self) -> None:
        """Forward nothing more on the connections that exist."""
        self.silent = set(range(1, self.connections + 1))

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        self.connections += 1
        number = self.connections
        to_reader, to_writer = await asyncio.open_connection(*self.server)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump(number, reader, to_writer))
                tasks.create_task(self._pump(number, to_reader, writer))
        except* ConnectionError:
            pass
        finally:
            writer.close()

    async def _pump(self, number: int, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            if number not in self.silent:
                target.write(data)
                await target.drain()
        target.close()


@asynccontextmanager
async def relayed(cluster: ClusterInfo, folder: Path) -> AsyncIterator[tuple[Relay, Path]]:
    """Yield a relay, and a kubeconfig that leads through it."""
    kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
    server = kubeconfig["clusters"][0]["cluster"]
    address = urlsplit(server["server"])
    relay = Relay(str(address.hostname), int(address.port or 443))
    listening = await asyncio.start_server(relay.handle, "127.0.0.1", 0)
    server["server"] = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    try:
        yield relay, path
    finally:
        listening.close()


async def test_a_silent_watch_is_noticed_and_shows_what_it_missed_without_a_list(
    cluster: ClusterInfo, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "QUIET_S", 2.0)
    kind, cache = BY_KIND["ConfigMap"], ObjectCache()
    lists: list[object] = []
    cache.listen_lists(lists.append)

    async def shell(*arguments: str) -> None:
        await asyncio.to_thread(kubectl, cluster, "-n", namespace, *arguments)

    async with relayed(cluster, tmp_path) as (relay, path), connect(namespace, path, cluster.context) as api:
        task = asyncio.create_task(watch.follow(api, cache, kind))
        await eventually("the first list", lambda: lists)
        for name in ("a", "b"):
            await shell("create", "configmap", name)
            await shell("label", "configmap", name, f"{MANAGED_BY_LABEL}={FIELD_MANAGER}")
            await eventually("the watch", lambda name=name: cache.get(f"ConfigMap/{name}"))  # type: ignore[misc]
            if name == "a":
                failures = watch.WATCH_FAILURES.labels(kind.kind)._value.get()
                relay.silence()
                await shell("delete", "configmap", "a")
        await eventually("the end of the object", lambda: cache.get("ConfigMap/a") is None)
        assert len(lists) == 1
        assert watch.WATCH_FAILURES.labels(kind.kind)._value.get() > failures
        task.cancel()
