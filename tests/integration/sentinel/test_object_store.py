"""The whole Sentinel with its states in an object store, encrypted with a key: S3 and KMS as moto's server has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from integration.sentinel.stack_objects import live, secret
from support.eventually import eventually
from support.object_store import CREDENTIALS, Cloud, run_cloud
from support.sentinel import config_map

from reside.cli.operator_requests import open_operator
from reside.cli.state import move_all
from reside.model.sentinel_data import DRY_RUN, MANAGE_STATE, MIGRATE_STATES, STACKS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from integration.sentinel.setup import Setup

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Yield a bucket and a key, with credentials in the environment, as the Secret of the Sentinel's pod sets them."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with run_cloud() as found:
        yield found


async def test_a_sentinel_with_an_empty_volume_goes_on_with_the_states_in_a_bucket_and_moves_them_back(
    cluster: ClusterInfo, setup: Setup, cloud: Cloud, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second Sentinel deletes what only the states tell it, and adopts the objects of a stack without a state."""
    stored = {"state_backend": cloud.settings["backend"], "secrets_provider": cloud.settings["secrets_provider"]}

    async def uids(*keys: str) -> list[Any]:
        found = [await live(cluster, setup, key) for key in keys]
        return [None if each is None else each["metadata"]["uid"] for each in found]

    async with at(setup, tmp_path / "one", **stored).running():
        alpha = await setup.alpha()
        value = alpha.group.create_map({"value": "very-secret"})
        await alpha.applied(await alpha.declare("demo", secret("web", value.id), config_map("a", x="1")))
        await alpha.applied(await alpha.declare("more", config_map("b", "more", x="1")))
        kept = await uids("Secret/web", "ConfigMap/b")
        await alpha.applied(await alpha.declare("lost", config_map("c", "lost", x="1")))
    assert {"cluster/demo", "cluster/more", "cluster/lost"} == {name.partition("/.pulumi")[0] for name in cloud.names()}
    assert b"very-secret" not in cloud.content()
    assert not states_on(tmp_path / "one")

    adopted = await uids("ConfigMap/c")
    cloud.delete("cluster/lost/")
    async with at(setup, tmp_path / "two", **stored).running():
        await alpha.applied(await alpha.declare("demo", secret("web", value.id)))
        assert await uids("ConfigMap/a") == [None]  # the volume does not know it; pruning would wait
        await alpha.applied(await alpha.declare("more", config_map("b", "more", x="2")))
        await alpha.applied(await alpha.declare("lost", config_map("c", "lost", x="2")))
        assert await uids("Secret/web", "ConfigMap/b") == kept
        assert await uids("ConfigMap/c") == adopted
        alpha.desired.delete("lost")
        await eventually("the end of its report", lambda: "lost" not in alpha.reports, within=120)
        assert await uids("ConfigMap/c") == [None]

    async with at(setup, tmp_path / "two", state_backend="volume").running(), setup.operator(MANAGE_STATE) as node:
        operator = await open_operator(node, setup.identity.credentials.account_id, MANAGE_STATE)
        await alpha.applied(await alpha.declare("more", config_map("b", "more", x="3")))  # moves its state, too
        preview = (await operator.ask(MIGRATE_STATES, {DRY_RUN: True})).members[STACKS]
        assert preview == {"demo": f"s3://{cloud.bucket}/cluster/demo"}
        assert await move_all(operator, list(preview)) == []
        await alpha.applied(await alpha.declare("demo", secret("web", value.id), config_map("d", x="1")))
        assert await uids("Secret/web", "ConfigMap/b") == kept
    assert not [name for name in cloud.names() if name.endswith(".json")]
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in "".join(capfd.readouterr())


def states_on(volume: Path) -> list[Path]:
    """Return the states on a volume."""
    return list(volume.glob("engine/workspaces/*/.pulumi"))


def at(setup: Setup, folder: Path, **settings: str) -> Setup:
    """Return a setup whose Sentinel has its volume in a folder, and these settings."""
    folder.mkdir(exist_ok=True)
    return replace(setup, settings=setup.settings.model_copy(update={"state_dir": folder, **settings}))
