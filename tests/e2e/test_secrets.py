"""No secret is in plain text in a state file, a log, a volume or Jazz, nor can another account decrypt it in Jazz.

The test searches the bootstrap's Pulumi state and logs, the Sentinel's volume with its Pulumi state, every transaction
that Jazz has ever stored, every pod's log, and every object of the namespace except for Secrets. It does not search the
API server's own etcd, which contains the Secrets themselves. What a person sets with `reside secret set` is searched
for, too.
"""

from __future__ import annotations

import json
from base64 import b64encode
from secrets import token_hex
from typing import TYPE_CHECKING

import anyio
import pytest
from e2e.administrator import address, credentials
from support.eventually import eventually_sync
from support.jazz_history import History, Stored, carriers

from reside.cli.cluster import DEFAULT_ACCOUNT
from reside.jazz import Credentials, Node
from reside.model.constants import (
    ALPHA_NAME,
    CLAIM_SECRET,
    ENGINE_SECRET,
    SECRET_REFERENCES_ANNOTATION,
    SENTINEL_NAME,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)
SYSTEM = (ALPHA_NAME, SENTINEL_NAME)
EXPECTED = {"alpha/agentSecret", "greeter/agentSecret", f"{ENGINE_SECRET}/passphrase", f"{CLAIM_SECRET}/code"}
"""Secrets that must be among those searched for; otherwise the test proves nothing."""
NAME = "database-password"


@pytest.fixture(scope="module")
def value(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Load the replica *secret* as docs/secrets.md says, and set a secret; return its value."""
    platform.build("replicas/secret/secret.v1", "latest")
    platform.load(platform.build("replicas/secret", "v1"))
    for permission in (("secret:manage:all",), ("secret:read", "--instance", NAME)):
        platform.reside("permission", "grant", DEFAULT_ACCOUNT, "secret", *permission)
    file, value = tmp_path_factory.mktemp("value") / "value", token_hex()
    file.write_text(value)
    eventually_sync("a secret", lambda: _is_set(platform, file), within=180)
    yield value
    platform.reside("replica", "delete", "secret", "--auto-approve")


def _is_set(platform: Platform, file: Path) -> bool:
    return platform.reside("secret", "set", NAME, "--from-file", str(file), check=False).returncode == 0


def _secrets(platform: Platform) -> dict[str, list[str]]:
    """Return the texts that must not be found, by `Secret/key`; an agent secret consists of two."""
    found = {}
    for secret in platform.objects("Secret"):
        for key, value in platform.secret(secret["metadata"]["name"]).items():
            if key != "accountId":
                found[f"{secret['metadata']['name']}/{key}"] = value.split("/") if key == "agentSecret" else [value]
    return found


def _forms(texts: list[str]) -> list[bytes]:
    """Return the texts as they are and in base64."""
    return [form for text in texts for form in (text.encode(), b64encode(text.encode()).rstrip(b"="))]


def _places(platform: Platform) -> Iterator[tuple[str, bytes]]:
    for folder in (platform.folder / "state", *platform.volumes()):
        assert folder.exists(), folder
        for file in folder.rglob("*"):
            if file.is_file():
                yield str(file), file.read_bytes()
    for pod in platform.objects("Pod"):
        name = pod["metadata"]["name"]
        yield f"log of {name}", platform.kubectl("logs", name).encode()
    objects = "pods,deployments,statefulsets,jobs,configmaps,events"
    yield "objects", platform.kubectl("get", objects, "-o", "yaml").encode()
    yield "output of make up", platform.up_output.encode()


def test_a_secret_that_a_person_sets_is_read_and_listed_by_permission(platform: Platform, value: str) -> None:
    read = eventually_sync(
        "the value", lambda: platform.reside("secret", "get", NAME, check=False), lambda done: done.returncode == 0
    )
    assert (read.stdout, read.stderr) == (value, "")
    (listed,) = json.loads(platform.reside("secret", "list", "--output", "json").stdout)
    assert (listed["name"], listed["readers"], listed["writers"]) == (NAME, [DEFAULT_ACCOUNT], [DEFAULT_ACCOUNT])
    platform.reside("permission", "revoke", DEFAULT_ACCOUNT, "secret", "secret:read", "--instance", NAME)
    refused = eventually_sync(
        "the refusal", lambda: platform.reside("secret", "get", NAME, check=False), lambda done: done.returncode == 1
    )
    assert (refused.stdout, "lacks secret:read for it" in refused.stderr) == ("", True)


def test_no_secret_is_in_plain_text(platform: Platform, value: str) -> None:
    secrets = _secrets(platform) | {f"secret {NAME}": [value]}
    assert secrets.keys() >= EXPECTED
    places = dict(_places(platform))
    assert any(".pulumi" in place for place in places), "no Pulumi state was found to look through"
    assert any(place.endswith("/jazz.db") for place in places), "Jazz's database was not found"
    leaks = [
        f"{name} in {place}"
        for name, texts in secrets.items()
        for place, content in places.items()
        if any(form in content for form in _forms(texts))
    ]
    assert leaks == []


def test_only_alpha_and_the_sentinel_can_decrypt_secrets_in_the_history_of_jazz(platform: Platform) -> None:
    """Agent secrets were in the history: Alpha writes them for the Sentinel and deletes them once they are live."""
    secrets = _secrets(platform)
    texts = [text for found in secrets.values() for text in found]
    references = platform.get("Secret", "greeter")["metadata"]["annotations"][SECRET_REFERENCES_ANNOTATION]
    written = json.loads(references)["agentSecret"]
    history = eventually_sync(
        "the erasure of the greeter's agent secret",
        lambda: History(platform.jazz_database()),
        lambda found: not [item for item in found.transactions if item.value == written and item.key is not None],
        within=240,
        show=lambda _: "its cipher text",
    )
    assert history.containing(texts) == []
    accounts = {name: platform.secret(name)["accountId"] for name in SYSTEM}
    for name in SYSTEM:
        seen = anyio.run(_decrypted, history, platform, credentials(platform, name))
        assert carriers(seen, texts), f"{name} does not find what was written for the Sentinel"
        for item in carriers(seen, texts):
            assert item.key is not None
            assert history.holders(item.key) == set(accounts.values())
    others = [name for name, _, key in (place.partition("/") for place in secrets) if key == "agentSecret"]
    for name in set(others) - set(SYSTEM):
        seen = anyio.run(_decrypted, history, platform, credentials(platform, name))
        assert seen, f"{name} can decrypt nothing at all"
        assert carriers(seen, texts) == [], name


async def _decrypted(history: History, platform: Platform, account: Credentials) -> dict[Stored, str]:
    """Return what an account can decrypt of the history."""
    async with Node(f"ws://{address(platform, 'jazz', 4200)}", account) as node:
        await node.login()
        return await history.decrypted_by(node)
