"""A cluster is backed up, deleted so that its namespace is as before, restored from the file, and upgraded under load.

The tests share a cluster: the second one upgrades what the first one has restored.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from anyio import to_thread
from e2e.administrator import credentials
from e2e.bootstraps import contents, here, kill_at
from e2e.calls import call_greeter, steady_calls
from e2e.images import touched
from support.eventually import eventually_sync

from reside.model.constants import RESIDE_REGISTRY as REGISTRY_HOST
from reside.model.errors import ResideError
from reside.registry import ImageReference, RegistryClient

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.bootstraps import Spare
    from support.platform import Platform

pytestmark = [pytest.mark.timeout(1200), pytest.mark.anyio]
SECRET = "correct horse battery staple"
_IDS = "SELECT id FROM coValues UNION SELECT coValueID FROM deletedCoValues"


def test_a_deleted_cluster_is_restored_from_its_backup(spare: Spare, tmp_path: Path) -> None:
    cluster, file = spare.cluster, tmp_path / "backup.reside"
    (tmp_path / "passphrase").write_text(f"{SECRET}\n")
    _use(cluster)
    before, ids = _seen(cluster), _ids(cluster)
    passphrase = ("--passphrase-file", str(tmp_path / "passphrase"))
    done = cluster.reside("cluster", "backup", str(file), *passphrase, "--output", "json")
    assert SECRET not in done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["file"] == str(file)
    assert file.stat().st_mode & 0o777 == 0o600

    listed = cluster.reside("cluster", "delete", "--yes").stdout
    assert "StatefulSet: etcd, jazz" in listed
    _check_empty(spare)
    where = ("--cluster", cluster.namespace, *here(cluster))

    restore = ("cluster", "restore", str(file), *passphrase, *where, "--account", "admin")
    kill_at(cluster, [*cluster.command, *restore], "volume jazz")
    done = cluster.reside(*restore, "--output", "json")
    assert [json.loads(line) for line in done.stdout.splitlines()][-1]["namespace"] == cluster.namespace
    eventually_sync("the replicas as they were", lambda: _seen(cluster), lambda seen: seen == before, within=180)
    assert ids <= _ids(cluster)
    eventually_sync("a pod of the greeter", lambda: cluster.ready_pods("greeter"), within=180)
    eventually_sync("an answer of the greeter", lambda: _called(cluster), lambda answer: answer == "1", within=90)
    assert "reside-restore" not in cluster.kubectl("get", "configmaps,pods", "-o", "name")


async def test_an_upgrade_under_load_fails_no_call_and_keeps_all_data(spare: Spare, tmp_path: Path) -> None:
    cluster, images = spare.cluster, tmp_path / "images.json"
    before, ids = await to_thread.run_sync(_seen, cluster), _ids(cluster)
    images.write_text(json.dumps(await to_thread.run_sync(_released, cluster)))
    shown = cluster.reside("cluster", "upgrade", "--images", str(images), check=False)
    assert (shown.returncode, "nothing was upgraded" in shown.stderr) == (1, True)
    assert "  alpha: sha256:" in shown.stdout
    assert "  StatefulSet/jazz:\n    spec.template.spec.containers" in shown.stdout
    assert await to_thread.run_sync(_seen, cluster) == before
    async with steady_calls(cluster, 20) as outcome:
        command = ("cluster", "upgrade", "--images", str(images), "--yes")
        await to_thread.run_sync(partial(cluster.reside, *command, seconds=400))
    assert outcome.failures == []
    after = await to_thread.run_sync(_seen, cluster)
    assert {name: row["version"] for name, row in after["replicas"].items()} == {
        name: row["version"] + (name in UPGRADED) for name, row in before["replicas"].items()
    }
    assert (after["permissions"], after["secrets"]) == (before["permissions"], before["secrets"])
    assert ids <= await to_thread.run_sync(_ids, cluster)


UPGRADED = ("alpha", "kubernetes-sentinel")
"""Replicas whose images `_released` changes; it also changes that of Jazz."""


def _released(cluster: Platform) -> dict[str, str]:
    """Push other images of the platform, and return all of them."""
    found: dict[str, str] = json.loads((cluster.folder / "state/images.json").read_text())
    client = RegistryClient({REGISTRY_HOST: f"http://{cluster.info.registry_loopback}"})
    for name in (*UPGRADED, "jazz"):
        reference = ImageReference.parse(touched(cluster, found[name]))
        found[name] = f"{reference.identity}@{anyio.run(client.resolve, reference)}"
    return found


def _use(cluster: Platform) -> None:
    """Load replicas, one of which has ended, and grant a permission by hand."""
    cluster.build("examples/contracts/greeting.v1", "latest")
    for name in ("greeter", "caller", "report"):
        cluster.load(cluster.build(f"examples/replicas/{name}", "v1"))
    cluster.reside("permission", "grant", "caller", "alpha", "replica:read:all", "--reason", "for the test")


def _called(cluster: Platform) -> str:
    """Return the version of the greeter that answers the caller, or why it does not."""
    try:
        return str(anyio.run(call_greeter, cluster, credentials(cluster, "caller"))["version"])
    except (ResideError, httpx2.HTTPError) as error:
        return repr(error)


def _seen(cluster: Platform) -> dict[str, Any]:
    """Return all replicas and permissions that an operator sees, and the credentials of the replicas."""
    permissions = json.loads(cluster.reside("permission", "list", "--output", "json").stdout)
    replicas = cluster.replicas()
    for row in replicas.values():
        row.pop("note")
    secrets = {name: cluster.secret(name) for name in ("alpha", "greeter", "caller", "super-admin-claim")}
    assert permissions
    return {"replicas": replicas, "permissions": permissions, "secrets": secrets}


def _ids(cluster: Platform) -> set[str]:
    """Return the ids of all values in Jazz, also of those that were deleted."""
    with closing(sqlite3.connect(f"file:{cluster.jazz_database()}?mode=ro", uri=True)) as database:
        return {row[0] for row in database.execute(_IDS)}


def _check_empty(spare: Spare) -> None:
    """Check that the namespace has exactly the objects that it had before the cluster, and no volume is left."""
    eventually_sync(
        "the namespace as it was",
        lambda: set(contents(spare.cluster)) ^ spare.before,
        lambda left: not left,
        within=180,
    )
    eventually_sync("no volume", spare.cluster.volumes, lambda left: not left, within=180)
