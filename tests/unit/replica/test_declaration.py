"""Declaring a replica: mistakes are errors at import that name the problem, also in settings and contracts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from reside.model.errors import InvalidInput, InvalidManifest
from reside.model.manifest import ContractManifest
from reside.replica import Call, Replica, ReplicaSettings, load_contract

if TYPE_CHECKING:
    from reside.replica import Context

EXAMPLES = Path(__file__).parents[3] / "examples"
IDENTITY = "r.example/c.v1"
SETTINGS: dict[str, Any] = {
    "replica_name": "greeter",
    "control_block_id": "co_zB",
    "account_id": "co_zA",
    "agent_secret": "sealerSecret_zSesame",
    "sync_server_url": "ws://jazz:4200",
    "etcd_hosts": "http://etcd:2379",
}


@pytest.fixture
def replica() -> Replica:
    return Replica(
        ContractManifest.model_validate(
            {"type": "contract", "identity": IDENTITY, "methods": {"greet": {}}, "permissions": {"greet": {}}}
        )
    )


async def handler(call: Call) -> None:
    """Return nothing."""


async def make(context: Context) -> Any:
    """Create nothing."""


def test_a_method_that_the_contract_does_not_have_is_refused(replica: Replica) -> None:
    with pytest.raises(InvalidInput, match="has no method sing"):
        replica.method(IDENTITY, "sing")


def test_a_method_declared_twice_is_refused(replica: Replica) -> None:
    replica.method(IDENTITY, "greet")(handler)
    with pytest.raises(InvalidInput, match="declared twice"):
        replica.method(IDENTITY, "greet")


def test_a_permission_that_the_contract_does_not_have_is_refused(replica: Replica) -> None:
    with pytest.raises(InvalidInput, match="has no permission sing"):
        replica.permission(IDENTITY, "sing")


def test_a_contract_that_is_not_implemented_is_refused(replica: Replica) -> None:
    with pytest.raises(InvalidInput, match=r"other\.v1 is not implemented by this replica"):
        replica.data("r.example/other.v1")(make)


def test_a_decorated_function_is_returned_unchanged(replica: Replica) -> None:
    assert replica.method(IDENTITY, "greet")(handler) is handler
    assert replica.main(make) is make


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"RESIDE_{name.upper()}", value)
    monkeypatch.setenv("RESIDE_ETCD_HOSTS", "http://a:2379, http://b:2379,")
    settings = ReplicaSettings()  # type: ignore[call-arg]  # from the environment
    assert settings.etcd_hosts == ("http://a:2379", "http://b:2379")
    assert settings.listen_port == 8080
    assert settings.access_context == "internal"


def test_settings_never_show_the_secret() -> None:
    assert "Sesame" not in repr(ReplicaSettings(**SETTINGS))
    with pytest.raises(ValidationError) as caught:
        ReplicaSettings(**{**SETTINGS, "etcd_hosts": " , ", "listen_port": 70000})
    assert "is empty: set it to" in str(caught.value)
    assert "Sesame" not in str(caught.value)


def test_a_missing_setting_is_named_without_showing_the_others() -> None:
    with pytest.raises(ValidationError, match="account_id") as caught:
        ReplicaSettings(**{key: value for key, value in SETTINGS.items() if key != "account_id"})
    assert "Sesame" not in str(caught.value)


def test_a_contract_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(f"identity: {IDENTITY}\nmethods: {{greet: {{}}}}\n")
    assert load_contract(file).identity == IDENTITY


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[unclosed", "is not YAML"),
        ("identity: 7", "identity"),
        ("- a list", "schema"),
        (
            "{type: replica, identity: r.example/x, info: {name: x, class: oneshot, exclusive: true, scalable: true}}",
            "describes a replica, not a contract",
        ),
    ],
)
def test_a_file_that_is_no_contract_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(text)
    with pytest.raises(InvalidManifest, match=complaint):
        load_contract(file)


def test_a_missing_contract_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidManifest, match=r"absent\.yaml can't be read: No such file"):
        load_contract(tmp_path / "absent.yaml")
