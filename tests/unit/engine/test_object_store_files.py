"""What the workspace knows of a stack whose state is in an object store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.sentinel.engine.object_store import ObjectStoreFiles, address_of
from reside.sentinel.engine.settings import EngineSettings

if TYPE_CHECKING:
    from pathlib import Path

BACKEND = "s3://states/cluster?region=x"
KMS = {"type": "cloud", "state": {"url": "awskms://alias/reside?region=x", "encryptedkey": "abc="}}
SALT = {"type": "passphrase", "state": {"salt": "v1:aaaa:v1:bbbb:cccc"}}


def files(folder: Path, backend: str = BACKEND, provider: str = "passphrase") -> ObjectStoreFiles:
    settings = EngineSettings(folder, "p", "reside", backend=backend, secrets_provider=provider)
    found = ObjectStoreFiles(settings, "demo", backend)
    found.prepare()
    return found


def test_each_stack_has_a_folder_of_its_own_in_the_store() -> None:
    assert address_of(BACKEND, "demo") == "s3://states/cluster/demo?region=x"
    assert address_of("gs://states", "demo") == "gs://states/demo"


@pytest.mark.parametrize(
    ("provider", "settings"),
    [
        (KMS, 'secretsprovider: "awskms://alias/reside?region=x"\nencryptedkey: abc=\n'),
        (SALT, "encryptionsalt: v1:aaaa:v1:bbbb:cccc\n"),
    ],
)
def test_an_empty_volume_gets_the_settings_from_the_state_and_a_mark(
    tmp_path: Path, provider: dict[str, object], settings: str
) -> None:
    found = files(tmp_path)
    assert not found.exists
    assert found.found({"secrets_providers": provider})
    assert found._config.read_text() == settings
    assert found.exists
    assert found.interrupted


def test_a_stack_without_an_operation_can_not_be_used(tmp_path: Path) -> None:
    found = files(tmp_path)
    assert not found.found({})
    assert not found.exists
    assert not found.interrupted


def test_settings_of_another_backend_and_cut_off_ones_say_nothing(tmp_path: Path) -> None:
    files(tmp_path).found({"secrets_providers": KMS})
    assert files(tmp_path).exists
    assert not files(tmp_path, "s3://others").exists
    assert not files(tmp_path).exists
    again = files(tmp_path)
    again._config.write_text("secretsprovider: x\nencryptedk")
    assert not again.exists


def test_the_salt_is_shared_only_if_the_passphrase_encrypts(tmp_path: Path) -> None:
    first = files(tmp_path)
    with first.shared_salt():
        first.found({"secrets_providers": SALT})
    first.lost()
    with first.shared_salt():
        assert first.exists
    other = files(tmp_path, provider="awskms://alias/reside")
    with other.shared_salt():
        assert not other.exists
