"""States in an object store, encrypted with a key of a service: S3 and KMS as moto's server has them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import ENGINES, actions, new_bench, secret, stack
from support.object_store import CREDENTIALS, Cloud, run_cloud
from support.sentinel import config_map

from reside.sentinel.engine import EngineKilled, PulumiEngine
from reside.sentinel.engine.stack_operations import StackOperation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from integration.engine.progress import Progress

    from reside.local import ClusterInfo
    from reside.sentinel.engine.runner import CommandResult

pytestmark = pytest.mark.anyio


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Yield a bucket and a key, with credentials in the environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with run_cloud() as found:
        yield found


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_stack_is_created_changed_and_deleted_with_its_state_in_a_bucket(
    cluster: ClusterInfo, cloud: Cloud, tmp_path: Path, engine: str
) -> None:
    """The next engine has an empty volume. It finds the state, changes what differs only, and deletes the rest."""
    first = (config_map("a", x="1"), config_map("b", x="1"), secret("s", key="hidden-value"))
    async with new_bench(cluster, tmp_path / "one", engine=engine, **cloud.settings) as bench:
        created = await bench.engine.apply(stack(*first))
        assert set(actions(created).values()) == {"create"}
        assert set(actions(await bench.engine.preview(stack(*first))).values()) == {"same"}
    assert "cluster/demo/.pulumi/stacks/reside/demo.json" in cloud.names()
    assert b"hidden-value" not in cloud.content()
    assert not list((tmp_path / "one").rglob("demo.json"))

    changes = {"engine": engine, "namespace": bench.namespace, **cloud.settings}
    async with new_bench(cluster, tmp_path / "two", **changes) as bench:
        exported = await bench.engine.export_state("demo")
        assert exported is not None
        assert b"ConfigMap::a" in exported
        changed = await bench.engine.apply(stack(config_map("a", x="2"), first[2]))
        assert actions(changed) == {"ConfigMap/a": "update", "ConfigMap/b": "delete", "Secret/s": "same"}
        await bench.engine.import_state("demo", exported)
        assert set(actions(await bench.engine.apply(stack(config_map("a", x="2"), first[2]))).values()) == {"same"}
        assert set(actions(await bench.engine.preview(stack(config_map("p", x="1"), name="other"))).values()) == {
            "create"
        }
        await bench.engine.destroy("demo")
        assert bench.live("ConfigMap/a") is None
        await bench.engine.destroy("never")
    assert not [key for key in cloud.names() if key.endswith(".json")]


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_engine_with_an_empty_volume_continues_after_a_kill_in_the_middle(
    cluster: ClusterInfo, cloud: Cloud, tmp_path: Path, engine: str
) -> None:
    """The lock of the dead engine and its pending operations are in the bucket, and nothing is created twice."""
    async with new_bench(cluster, tmp_path / "one", engine=engine, **cloud.settings) as bench:
        await bench.engine.apply(stack(config_map("a", x="0")))
        before = bench.live("ConfigMap/a")

        def kill(progress: Progress) -> None:
            if progress.phase == "done" and progress.action == "create":
                for leader in bench.leaders():
                    with suppress(ProcessLookupError):  # it has ended just now
                        os.kill(leader, signal.SIGKILL)

        for attempt in range(10):  # an engine may end before the news of its first object arrives
            objects = tuple(config_map(name, x="1") for name in ("a", *(f"m{attempt}-{n}" for n in range(30))))
            with suppress(EngineKilled):
                await bench.engine.apply(stack(*objects), kill)
            if any("/locks/" in key for key in cloud.names()):
                break
        else:
            pytest.fail("ten operations ended before their engine was killed")

    changes = {"engine": engine, "namespace": bench.namespace, **cloud.settings}
    async with new_bench(cluster, tmp_path / "two", **changes) as bench:
        await bench.engine.apply(stack(*objects))
        after = bench.live("ConfigMap/a")
        assert before is not None
        assert after is not None
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert set(actions(await bench.engine.apply(stack(*objects))).values()) == {"same"}
        state = bench.export("demo")["deployment"]
        assert not state.get("pending_operations")
        assert len(state["resources"]) == len(objects) + 2
        assert not [key for key in cloud.names() if "/locks/" in key]


async def test_a_state_moves_from_the_volume_to_a_bucket_and_back_with_the_next_operation(
    cluster: ClusterInfo, cloud: Cloud, tmp_path: Path
) -> None:
    """No object is created again, secrets are encrypted anew, and nothing stays where the state was."""
    objects = (config_map("a", x="1"), secret("s", key="hidden-value"))
    async with new_bench(cluster, tmp_path) as bench:
        await bench.engine.apply(stack(*objects))
        await bench.engine.apply(stack(config_map("m", x="1"), name="more"))
        assert await bench.engine.misplaced() == {}
    namespace = bench.namespace

    async with new_bench(cluster, tmp_path, namespace=namespace, **cloud.settings) as bench:
        assert await bench.engine.misplaced() == {"demo": "the volume", "more": "the volume"}
        assert set(actions(await bench.engine.apply(stack(*objects))).values()) == {"same"}
        assert await bench.engine.misplaced() == {"more": "the volume"}
        await bench.engine.move_state("more")
        await bench.engine.move_state("more")
        assert await bench.engine.misplaced() == {}
        assert not states_on(tmp_path)
        assert b"awskms" in cloud.content()
        assert b"hidden-value" not in cloud.content()
        assert set(actions(await bench.engine.apply(stack(*objects[1:]))).values()) == {"delete", "same"}

    async with new_bench(cluster, tmp_path, namespace=namespace) as bench:
        assert await bench.engine.misplaced() == {
            name: f"s3://{cloud.bucket}/cluster/{name}" for name in ("demo", "more")
        }
        assert actions(await bench.engine.apply(stack(*objects))) == {"ConfigMap/a": "create", "Secret/s": "same"}
        await bench.engine.destroy("more")
        assert bench.live("ConfigMap/m") is None
        assert await bench.engine.misplaced() == {}
    assert not [key for key in cloud.names() if key.endswith(".json")]
    (state,) = [found for found in states_on(tmp_path) if found.name == "demo.json"]
    assert b'"passphrase"' in state.read_bytes()


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
async def test_no_state_is_lost_if_the_sentinel_dies_at_any_command_of_a_move(
    cluster: ClusterInfo, cloud: Cloud, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies at one command later each time. Then the setting changes back in the middle of a move."""
    deaths = Deaths(monkeypatch, when)
    objects = (config_map("a", x="1"), secret("s", key="hidden-value"))
    async with new_bench(cluster, tmp_path) as bench:
        await bench.engine.apply(stack(*objects))
    namespace = bench.namespace
    for settings in (cloud.settings, {}, cloud.settings):
        async with new_bench(cluster, tmp_path, namespace=namespace, **settings) as bench:
            await deaths.until_moved(bench.engine)
            assert await bench.engine.misplaced() == {}
            assert set(actions(await bench.engine.preview(stack(*objects))).values()) == {"same"}
    async with new_bench(cluster, tmp_path, namespace=namespace) as bench:
        await deaths.die_at(bench.engine, 4)
    async with new_bench(cluster, tmp_path, namespace=namespace, **cloud.settings) as bench:
        assert set(actions(await bench.engine.apply(stack(*objects))).values()) == {"same"}
        assert await bench.engine.misplaced() == {}
    assert not states_on(tmp_path)


def states_on(folder: Path) -> list[Path]:
    """Return the states on the volume, and notes of moves."""
    return list((folder / "engine" / "workspaces").rglob("*.json*"))


class Deaths:
    """Ends operations at a command, as the death of the Sentinel does.

    Args:
        monkeypatch: replaces how operations run commands.
        when: `before` or `after` the command has run.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
        self._left: int | None = None
        execute = StackOperation._execute

        def dying(operation: StackOperation, *arguments: Any) -> CommandResult:
            if self._left is None:
                return execute(operation, *arguments)
            self._left -= 1
            if self._left == 0 and when == "before":
                raise EngineKilled("died")
            result = execute(operation, *arguments)
            if self._left == 0:
                raise EngineKilled("died")
            return result

        monkeypatch.setattr(StackOperation, "_execute", dying)

    async def die_at(self, engine: PulumiEngine, command: int) -> None:
        """Begin to move the state, and die at one command."""
        self._left = command
        with pytest.raises(EngineKilled):
            await engine.move_state("demo")
        self._left = None

    async def until_moved(self, engine: PulumiEngine) -> None:
        """Die at the first command, then at the second one, and so on, until a move is complete."""
        for command in range(1, 20):
            self._left = command
            try:
                await engine.move_state("demo")
            except EngineKilled:
                assert await engine.misplaced()
            else:
                self._left = None
                return
        pytest.fail("the move has 20 commands")
