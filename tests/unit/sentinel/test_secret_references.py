"""Secret references, the vault that keeps their values, and what is never shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from reside.model.constants import SECRET_REFERENCES_ANNOTATION
from reside.model.errors import InvalidInput, NotReady
from reside.sentinel.objects.live import reported
from reside.sentinel.objects.secrets import filled, live_value, references
from reside.sentinel.store.vault import Vault

PASSPHRASE = SecretStr("open sesame")


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
    path = tmp_path / "vault.json"
    vault = Vault(path, PASSPHRASE)
    vault.put("co_za", "co_zvalue", "very-secret-value")
    again = Vault(path, PASSPHRASE)
    assert again.get("co_za", "co_zvalue") == "very-secret-value"
    assert b"very-secret-value" not in path.read_bytes()
    assert "very-secret-value" not in repr(again)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_value_is_found_under_its_author_only(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault.json", PASSPHRASE)
    vault.put("co_za", "co_zvalue", "x")
    assert vault.get("co_zb", "co_zvalue") is None


def test_the_vault_sees_what_another_process_wrote_and_forgets_what_is_unused(tmp_path: Path) -> None:
    path = tmp_path / "vault.json"
    one, two = Vault(path, PASSPHRASE), Vault(path, PASSPHRASE)
    one.put("co_za", "co_z1", "x")
    one.put("co_za", "co_z2", "y")
    two.load()
    assert two.get("co_za", "co_z2") == "y"
    two.keep_only({("co_za", "co_z2")})
    one.load()
    assert one.get("co_za", "co_z1") is None


def test_a_wrong_passphrase_or_a_damaged_vault_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "vault.json"
    vault = Vault(path, PASSPHRASE)
    vault.put("co_za", "co_z1", "x")
    vault.put("co_za", "co_z2", "y")
    with pytest.raises(InvalidInput, match="another passphrase"):
        Vault(path, SecretStr("else"))
    document = json.loads(path.read_text())
    values = document["values"]
    values["co_za co_z1"], values["co_za co_z2"] = values["co_za co_z2"], values["co_za co_z1"]
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match="tampered"):
        Vault(path, PASSPHRASE)
    path.write_text("{")
    with pytest.raises(InvalidInput, match="delete the file"):
        Vault(path, PASSPHRASE)


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
        Vault(tmp_path / "missing" / "vault.json", PASSPHRASE).put("co_za", "co_z1", "x")
