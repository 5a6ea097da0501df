"""Secret references, the vault that keeps their values, and what is never shown."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from nacl.secret import SecretBox
from pydantic import SecretStr

from reside.model.constants import SECRET_REFERENCES_ANNOTATION
from reside.model.errors import InvalidInput, NotReady
from reside.sentinel.objects.live import reported
from reside.sentinel.objects.secrets import filled, live_value, references
from reside.sentinel.store import vault as vault_module
from reside.sentinel.store.earlier_vault import take_over
from reside.sentinel.store.vault import Vault

PASSPHRASE = SecretStr("open sesame")
OWNER = "co_zowner"


def secret(annotation: str | None = '{"agentSecret": "co_zvalue"}', **more: Any) -> dict[str, Any]:
    annotations = {} if annotation is None else {SECRET_REFERENCES_ANNOTATION: annotation}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "annotations": annotations}, **more}


def test_a_reference_is_filled_in_beside_existing_data() -> None:
    given = secret(stringData={"accountId": "co_za"})
    result = filled(given, lambda reference: f"value of {reference.target}")
    assert result["stringData"] == {"accountId": "co_za", "agentSecret": "value of co_zvalue"}
    assert given["stringData"] == {"accountId": "co_za"}


def test_an_unknown_value_is_named_by_key_and_map() -> None:
    with pytest.raises(NotReady, match=r"Secret/web: no value for its key agentSecret \(co_zvalue\)"):
        filled(secret(), lambda _: None)


def test_objects_without_references_are_left_as_they_are() -> None:
    plain = secret(None, data={"a": "Yg=="})
    assert filled(plain, lambda _: None) is plain
    assert references({**secret(), "kind": "ConfigMap"}) == []


@pytest.mark.parametrize("annotation", ["nonsense", "[]", '{"a": 1}', '"a"'])
def test_a_malformed_annotation_is_refused(annotation: str) -> None:
    with pytest.raises(InvalidInput, match="JSON object"):
        references(secret(annotation))


def test_a_live_secret_gives_its_value() -> None:
    assert live_value({"data": {"a": "Yg=="}}, "a") == "b"
    assert live_value({"data": {"a": "?"}}, "a") is None
    assert live_value({"data": {}}, "a") is None
    assert live_value(None, "a") is None


def test_the_vault_keeps_values_across_a_restart_and_never_shows_them(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    vault = Vault(folder, PASSPHRASE)
    vault.put("co_za", "co_zvalue", "very-secret-value")
    again = Vault(folder, PASSPHRASE)
    assert again.get("co_za", "co_zvalue") == "very-secret-value"
    assert "very-secret-value" not in repr(again)
    assert len(list(folder.iterdir())) == 2
    for path in folder.iterdir():
        assert b"very-secret-value" not in path.read_bytes()
        assert "co_z" not in path.name
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_value_costs_one_small_write_whatever_the_number_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault(tmp_path / "vault", PASSPHRASE)
    for number in range(20):
        vault.put("co_za", f"co_z{number}", "x")
    written: list[int] = []
    monkeypatch.setattr(vault_module, "write_file", lambda _path, content: written.append(len(content)))
    vault.put("co_za", "co_znew", "x")
    vault.put("co_za", "co_z1", "x")
    assert len(written) == 1
    assert written[0] < 200


@pytest.mark.anyio
async def test_values_are_stored_aside_and_known_at_once(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault", PASSPHRASE)
    await vault.put_aside({("co_za", "co_z1"): "x", ("co_za", "co_z2"): "y"})
    assert (vault.get("co_za", "co_z1"), Vault(tmp_path / "vault", PASSPHRASE).get("co_za", "co_z2")) == ("x", "y")


def test_two_processes_that_begin_a_vault_use_one_salt(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    one, two = Vault(folder, PASSPHRASE), Vault(folder, PASSPHRASE)
    one.put("co_za", "co_z1", "x")
    two.put("co_za", "co_z2", "y")
    again = Vault(folder, PASSPHRASE)
    assert (again.get("co_za", "co_z1"), again.get("co_za", "co_z2")) == ("x", "y")


def test_a_value_is_found_under_its_author_only(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault", PASSPHRASE)
    vault.put("co_za", "co_zvalue", "x")
    assert vault.get("co_zb", "co_zvalue") is None


def test_the_vault_sees_what_another_process_wrote_and_forgets_what_is_unused(tmp_path: Path) -> None:
    path = tmp_path / "vault"
    one, two = Vault(path, PASSPHRASE), Vault(path, PASSPHRASE)
    one.put("co_za", "co_z1", "x")
    one.put("co_za", "co_z2", "y")
    two.load()
    assert two.get("co_za", "co_z2") == "y"
    one.put("co_za", "co_z2", "z")
    two.load_one("co_za", "co_z2")
    assert two.get("co_za", "co_z2") == "z"
    two.keep_only({("co_za", "co_z2")})
    one.load()
    assert one.get("co_za", "co_z1") is None
    assert one.get("co_za", "co_z2") == "z"


def test_a_wrong_passphrase_or_a_forged_vault_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "vault"
    vault = Vault(path, PASSPHRASE)
    vault.put("co_za", "co_z1", "x")
    vault.put("co_za", "co_z2", "y")
    with pytest.raises(InvalidInput, match="another passphrase"):
        Vault(path, SecretStr("else"))
    first, second = sorted(path.glob("*.value"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(InvalidInput, match="tampered"):
        Vault(path, PASSPHRASE)


DAMAGES = [b"", b"{", b"\0\0\0", b"\xff", b"[]", b"AA=="]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_vault_with_a_damaged_salt_is_replaced_by_an_empty_one(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "vault"
    Vault(path, PASSPHRASE).put("co_za", "co_z1", "x")
    (path / "salt").write_bytes(damage)
    vault = Vault(path, PASSPHRASE)
    vault.load()
    assert vault.get("co_za", "co_z1") is None
    vault.put("co_za", "co_z2", "y")
    again = Vault(path, PASSPHRASE)
    assert (again.get("co_za", "co_z1"), again.get("co_za", "co_z2")) == (None, "y")


@pytest.mark.parametrize("damage", [*DAMAGES, None])
def test_a_damaged_value_is_ignored_and_replaced(tmp_path: Path, damage: bytes | None) -> None:
    path = tmp_path / "vault"
    Vault(path, PASSPHRASE).put("co_za", "co_z1", "x")
    (file,) = path.glob("*.value")
    file.write_bytes(file.read_bytes()[:-8] if damage is None else damage)
    vault = Vault(path, PASSPHRASE)
    vault.put("co_za", "co_z2", "y")
    assert (vault.get("co_za", "co_z1"), vault.get("co_za", "co_z2")) == (None, "y")
    vault.put("co_za", "co_z1", "x")
    again = Vault(path, PASSPHRASE)
    assert (again.get("co_za", "co_z1"), again.get("co_za", "co_z2")) == ("x", "y")


def test_a_reported_secret_shows_its_keys_and_no_value() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "very-secret-value", "a": "b"}
    live = secret(None, data={"password": "very-secret-value"})
    live["metadata"] |= {"annotations": annotations, "managedFields": [{}], "resourceVersion": "7", "uid": "u"}
    shown = reported(live)
    assert "very-secret-value" not in json.dumps(shown)
    assert shown["data"] == {"password": "***"}
    assert shown["metadata"] == {"name": "web", "annotations": {"a": "b"}, "uid": "u"}
    assert live["data"] == {"password": "very-secret-value"}


def test_a_volume_that_cannot_be_written_is_a_transient_error(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="full or read-only"):
        Vault(tmp_path / "missing" / "vault", PASSPHRASE).put("co_za", "co_z1", "x")


def earlier_vault(file: Path, passphrase: SecretStr, **values: str) -> None:
    """Write a vault as the earlier release did: one file with all values."""
    salt = b"0123456789abcdef"
    box = SecretBox(hashlib.scrypt(passphrase.get_secret_value().encode(), salt=salt, n=2**14, r=8, p=1, dklen=32))
    sealed = {
        f"{OWNER} {reference}": base64.b64encode(
            box.encrypt(json.dumps([f"{OWNER} {reference}", value]).encode())
        ).decode()
        for reference, value in values.items()
    }
    file.write_text(json.dumps({"salt": base64.b64encode(salt).decode(), "values": sealed}))


def test_the_vault_of_an_earlier_release_is_taken_over(tmp_path: Path) -> None:
    """What the present vault has is newer."""
    earlier_vault(tmp_path / "vault.json", PASSPHRASE, co_za="kept", co_zb="old")
    vault = Vault(tmp_path / "vault", PASSPHRASE)
    vault.put(OWNER, "co_zb", "new")
    take_over(tmp_path / "vault.json", vault, PASSPHRASE)
    assert not (tmp_path / "vault.json").exists()
    again = Vault(tmp_path / "vault", PASSPHRASE)
    assert (again.get(OWNER, "co_za"), again.get(OWNER, "co_zb")) == ("kept", "new")
    take_over(tmp_path / "vault.json", vault, PASSPHRASE)


@pytest.mark.parametrize("content", [None, "", "{", '{"salt": "AAAA", "values": []}', '{"values": {}}', "[]"])
def test_an_earlier_vault_that_can_not_be_read_stays(tmp_path: Path, content: str | None) -> None:
    """Also one of another passphrase (None)."""
    file, vault = tmp_path / "vault.json", Vault(tmp_path / "vault", PASSPHRASE)
    if content is None:
        earlier_vault(file, SecretStr("other"), co_za="x")
    else:
        file.write_text(content)
    take_over(file, vault, PASSPHRASE)
    assert file.exists()
    assert vault.get(OWNER, "co_za") is None
