"""Interpretation of the engine's events, output and state."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.common.masking import mask
from reside.model.previews import ObjectChange
from reside.sentinel.engine.diagnosis import LONGEST, diagnose
from reside.sentinel.engine.errors import (
    ApplyBlocked,
    ApplyConflict,
    ApplyRejected,
    DeletionPending,
    EngineBroken,
    EngineError,
    EngineKilled,
    EngineUnavailable,
    ProviderEnded,
    StackLocked,
)
from reside.sentinel.engine.events import Complaint, EventReader, object_of
from reside.sentinel.engine.in_cluster import write_kubeconfig
from reside.sentinel.engine.settings import EngineSettings
from reside.sentinel.engine.stack_files import StackFiles, without_objects, without_pending
from reside.sentinel.objects.masking import secret_values

if TYPE_CHECKING:
    from pathlib import Path

URN = "urn:pulumi:demo::reside::kubernetes:core/v1:ConfigMap::a"
BECAUSE = 'the Kubernetes API server reported that "ns/a" failed to fully initialize or become live'
STUCK = f"{BECAUSE}: timed out waiting for the condition"
PROVIDER = "urn:pulumi:demo::reside::pulumi:providers:kubernetes::kubernetes"


def step(event: str, op: str, urn: str = URN, **more: Any) -> dict[str, Any]:
    return {event: {"metadata": {"op": op, "urn": urn, **more}}}


@pytest.mark.parametrize(
    ("urn", "expected"),
    [
        (URN, "ConfigMap/a"),
        ("urn:pulumi:s::reside::kubernetes:apps/v1:Deployment::greeter-1", "Deployment/greeter-1"),
        ("urn:pulumi:s::reside::x:y:Z$kubernetes:core/v1:Secret::s", "Secret/s"),
        (PROVIDER, None),
        ("urn:pulumi:s::reside::pulumi:pulumi:Stack::reside-s", None),
        ("", None),
    ],
)
def test_object_of_a_urn(urn: str, expected: str | None) -> None:
    assert object_of(urn) == expected


def test_the_versions_are_those_of_the_objects_that_were_written() -> None:
    reader = EventReader()
    outputs = {"outputs": {"metadata": {"resourceVersion": "7"}}}
    for name, op in (("a", "create"), ("b", "update"), ("c", "same"), ("d", "delete")):
        reader.read(step("resourcePreEvent", op, URN[:-1] + name))
        reader.read(step("resOutputsEvent", op, URN[:-1] + name, new=outputs))
    reader.read(step("resOutputsEvent", "create", PROVIDER, new=outputs))
    reader.read(step("resOutputsEvent", "create", URN[:-1] + "e", new=None))
    assert reader.versions == {"ConfigMap/a": "7", "ConfigMap/b": "7"}


@pytest.mark.parametrize("op", ["same", "create", "update", "delete"])
def test_a_step_is_one_change(op: str) -> None:
    reader = EventReader()
    reader.read(step("resourcePreEvent", op))
    reader.read(step("resOutputsEvent", op))
    assert [(c.object, c.action) for c in reader.changes] == [("ConfigMap/a", op)]


def test_a_replacement_is_one_change_with_its_paths() -> None:
    reader = EventReader()
    diff = {"spec.template": {"kind": "update"}, "__fieldManager": {"kind": "update"}}
    for op in ("delete-replaced", "replace", "create-replacement"):
        reader.read(step("resourcePreEvent", op, detailedDiff=diff if op == "replace" else None))
        reader.read(step("resOutputsEvent", op))
    assert reader.changes == (ObjectChange("ConfigMap/a", "replace", ("spec.template",)),)


def test_an_object_that_is_retained_is_not_deleted() -> None:
    reader = EventReader()
    reader.read(step("resourcePreEvent", "delete", old={"retainOnDelete": True}))
    assert reader.changes == ()
    reader.read(step("resourcePreEvent", "delete", old={"retainOnDelete": False}))
    assert [change.action for change in reader.changes] == ["delete"]


def test_other_resources_and_other_events_are_left_out() -> None:
    reader = EventReader()
    for event in (
        step("resourcePreEvent", "create", PROVIDER),
        step("resourcePreEvent", "refresh"),
        {"preludeEvent": {}},
    ):
        reader.read(event)
    assert reader.changes == ()


def test_only_errors_are_complaints() -> None:
    reader = EventReader()
    for severity in ("info", "warning", "error"):
        reader.read({"diagnosticEvent": {"severity": severity, "message": severity, "urn": URN}})
    assert reader.complaints == [Complaint("ConfigMap/a", "error")]


CONFLICT = (
    "Server-Side Apply field conflict detected. See https://example.org for troubleshooting help.\n"
    'The resource managed by field manager "kubernetes-sentinel" had an apply conflict: '
    'Apply failed with 2 conflicts: conflicts with "other" using v1:\n- .data.x\n- .data.y'
)


@pytest.mark.parametrize(
    ("code", "complaints", "stderr", "kind"),
    [
        (-9, [], "", EngineKilled),
        (255, [Complaint("ConfigMap/a", CONFLICT)], "", ApplyConflict),
        (255, [Complaint("Deployment/d", "is invalid: spec: Required value")], "", ApplyRejected),
        (255, [Complaint("Job/j", 'jobs "j" is forbidden: exceeded quota: q')], "", ApplyBlocked),
        (255, [Complaint("ConfigMap/a", STUCK)], "", DeletionPending),
        (255, [Complaint("Job/j", STUCK), Complaint("Secret/s", "is invalid")], "", ApplyRejected),
        (255, [Complaint("ConfigMap/a", "configured Kubernetes cluster is unreachable: x")], "", EngineUnavailable),
        (255, [Complaint(None, "dial tcp 127.0.0.1:9: connect: connection refused")], "", EngineUnavailable),
        (255, [], "error: the stack is currently locked by 1 lock(s).", StackLocked),
        (255, [], "error: incorrect passphrase", EngineBroken),
        (255, [], "error: something else", EngineBroken),
    ],
)
def test_each_end_is_one_error(code: int, complaints: list[Complaint], stderr: str, kind: type[EngineError]) -> None:
    assert type(diagnose(code, complaints, stderr, ())) is kind


@pytest.mark.parametrize(
    "refusal",
    [
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes',
        'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid u1',
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "u1": field is immutable',
    ],
)
def test_a_create_that_another_program_was_faster_than_is_tried_again(refusal: str) -> None:
    error = diagnose(255, [Complaint(None, "update failed"), Complaint("ConfigMap/a", refusal)], "", ())
    assert isinstance(error, ApplyBlocked)
    assert error.object == "ConfigMap/a"
    assert "reside.io/replace" not in error.message


def test_a_conflict_names_object_manager_and_fields() -> None:
    error = diagnose(255, [Complaint(None, "update failed"), Complaint("ConfigMap/a", CONFLICT)], "", ())
    assert isinstance(error, ApplyConflict)
    assert (error.object, error.manager) == ("ConfigMap/a", "other")
    assert ".data.x - .data.y" in str(error)


@pytest.mark.parametrize(
    "refusal",
    [
        'Deployment.apps "web" is invalid: spec.selector: Invalid value: {}: field is immutable',
        'PersistentVolumeClaim "a" is invalid: spec: Forbidden: spec is immutable after creation',
        'StatefulSet.apps "s" is invalid: spec: Forbidden: updates to statefulset spec for fields other than x',
        'RoleBinding "a" is invalid: roleRef: Invalid value: {}: cannot change roleRef',
        'Service "a" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set',
    ],
)
def test_a_change_that_kubernetes_forbids_is_refused_with_the_cure(refusal: str) -> None:
    error = diagnose(255, [Complaint("X/a", refusal + " word" * 200)], "", ())
    assert isinstance(error, ApplyRejected)
    assert refusal[:60] in error.message
    assert "reside.io/replace" in error.message


def test_messages_are_truncated_and_masked() -> None:
    text = "is invalid: " + "word " * 300 + "hunter2"
    error = diagnose(255, [Complaint("Secret/s", "hunter2 " + text)], "", ("hunter2",))
    assert "hunter2" not in str(error)
    assert len(error.message) <= LONGEST


def test_a_secret_that_is_divided_by_truncation_is_masked() -> None:
    secret = "hunter2-" * 10
    stderr = "panic: " + secret + "x" * (LONGEST - 20)
    assert "hunter2" not in str(diagnose(2, [], stderr, (secret,)))


def secret_of(**values: str) -> dict[str, Any]:
    return {"kind": "Secret", "stringData": values}


def test_values_are_masked_plain_and_encoded_but_not_other_objects() -> None:
    encoded = base64.b64encode(b"other-value").decode()
    secrets = secret_values(
        [secret_of(a="some-value"), {"kind": "Secret", "data": {"b": encoded}}, {"kind": "ConfigMap"}]
    )
    text = f"some-value other-value {encoded} {base64.b64encode(b'some-value').decode()} kept"
    assert mask(text, secrets) == "[secret] [secret] [secret] [secret] kept"


@given(st.text(min_size=4), st.text(), st.text())
def test_no_secret_survives_masking(value: str, before: str, after: str) -> None:
    assert value not in mask(before + value + after, secret_values([secret_of(key=value)])).replace("[secret]", "")


def test_pending_operations_are_dropped_and_nothing_else() -> None:
    state = {"version": 3, "deployment": {"resources": [1], "pending_operations": [{"type": "creating"}]}}
    assert without_pending(state) == {"version": 3, "deployment": {"resources": [1]}}
    assert without_pending({"version": 3, "deployment": {"resources": [1]}}) is None
    assert without_pending({}) is None


def test_only_locks_and_drafts_of_the_same_stack_are_removed(tmp_path: Path) -> None:
    settings = EngineSettings(tmp_path, "p", "reside")
    ours, theirs = (
        settings.workspace(name) / ".pulumi/locks/organization/reside" / name / "1.json" for name in ("demo", "demo-2")
    )
    draft, kept = (
        settings.workspace("demo") / ".pulumi/stacks/reside" / name for name in ("demo.json.18ab.tmp", "demo.json")
    )
    for file in (ours, theirs, draft, kept):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    files = StackFiles(settings, "demo")
    files.prepare()
    assert [file.exists() for file in (ours, theirs, draft, kept)] == [False, True, False, True]
    assert files.exists
    files.remove()
    assert not files.exists
    assert theirs.exists()


def test_an_operation_that_did_not_end_is_remembered(tmp_path: Path) -> None:
    files = StackFiles(EngineSettings(tmp_path, "p", "reside"), "demo")
    files.prepare()
    assert not files.interrupted
    files.mark_running()
    assert StackFiles(EngineSettings(tmp_path, "p", "reside"), "demo").interrupted
    files.mark_ended()
    assert not files.interrupted


def test_settings_hide_the_passphrase(tmp_path: Path) -> None:
    assert "the-passphrase" not in repr(EngineSettings(tmp_path, "the-passphrase", "reside"))


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_a_pods_kubeconfig_names_the_rotating_token_by_its_path(tmp_path: Path, host: str, server: str) -> None:
    file = tmp_path / "kubeconfig"
    write_kubeconfig(file, "reside", {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"})
    config = json.loads(file.read_text())
    authority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
    assert config["clusters"][0]["cluster"] == {"server": server, "certificate-authority": authority}
    assert config["users"][0]["user"] == {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}


def test_a_missing_kubeconfig_outside_of_a_pod_is_reported_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(EngineBroken, match="RESIDE_KUBECONFIG"):
        write_kubeconfig(tmp_path / "kubeconfig", "reside", {})


def test_a_released_object_is_forgotten_with_all_references_to_it() -> None:
    def urn(kind: str, name: str) -> str:
        return f"urn:pulumi:demo::reside::pulumi:pulumi:Stack$kubernetes:{kind}::{name}"

    config, claim = urn("core/v1:ConfigMap", "a"), urn("core/v1:PersistentVolumeClaim", "data")
    web = {
        "urn": urn("apps/v1:Deployment", "web"),
        "dependencies": [config, claim],
        "propertyDependencies": {"spec": [claim]},
    }
    state = {"version": 3, "deployment": {"manifest": {}, "resources": [{"urn": config}, {"urn": claim}, web]}}
    assert without_objects(state, {"PersistentVolumeClaim/data"}) == {
        "version": 3,
        "deployment": {
            "manifest": {},
            "resources": [{"urn": config}, web | {"dependencies": [config], "propertyDependencies": {"spec": []}}],
        },
    }
    assert without_objects(state, {"Secret/a"}) is None
    assert without_objects({}, {"Secret/a"}) is None


def test_a_refusal_counts_although_other_requests_were_interrupted() -> None:
    cancelled = Complaint("ConfigMap/a", 'Patch "https://127.0.0.1:22000/api/v1/namespaces/x": context canceled')
    complaints = [cancelled, Complaint("ConfigMap/b", "it is invalid")]
    error = diagnose(255, complaints, "", ())
    assert isinstance(error, ApplyRejected)
    assert error.object == "ConfigMap/b"


@pytest.mark.parametrize(
    "text",
    [
        "rpc error: code = Unavailable desc = the provider kubernetes (process 26708) ended during the call: x",
        "rpc error: code = Unavailable desc = the provider x (process 5) ended: read: connection reset by peer",
        "rpc error: code = Unavailable desc = error reading from server: EOF",
        "error reading from server: EOF",
        "pulumi-resource-kubernetes exited prematurely with signal 9",
    ],
)
def test_the_end_of_a_provider_is_no_refusal_of_the_object(text: str) -> None:
    """An attempt after that succeeds, so it must not wait for a change. Another stack may have ended the provider."""
    said = [
        Complaint(None, "x exited prematurely: panic"),
        Complaint(None, "update failed"),
        Complaint("ConfigMap/a", text),
    ]
    error = diagnose(255, said, "", ())
    assert type(error) is ProviderEnded
    assert error.object == "ConfigMap/a"


@pytest.mark.parametrize(
    "text",
    [
        'Patch "https://127.0.0.1:22000/api/v1/namespaces/x/configmaps/a?force=false": context canceled',
        'Patch "https://127.0.0.1:22000/api/v1/namespaces/x/configmaps/a": read: connection reset by peer',
        'Patch "https://127.0.0.1:22000/api/v1/namespaces/x/configmaps/a": EOF',
        'Patch "https://127.0.0.1:22000/api/v1/namespaces/x/configmaps/a": write: broken pipe',
        'Get "https://127.0.0.1:22000/api/v1/namespaces/x/configmaps/a": http2: client connection lost',
        'Get "https://x/api": http2: server sent GOAWAY and closed the connection; LastStreamID=7, ErrCode=NO_ERROR',
        'Get "https://x/api": net/http: request canceled (Client.Timeout exceeded while awaiting headers)',
        "the server was unable to return a response in the time allotted, but may still be processing the request",
        "Timeout: request did not complete within requested timeout",
        "apiserver is shutting down",
        "storage is (re)initializing",
        "rpc error: code = Unavailable desc = keepalive ping failed to receive ACK within timeout",
        'configmaps "a" is forbidden: not yet ready to handle request',
    ],
)
def test_the_end_of_a_request_is_no_refusal_of_the_object(text: str) -> None:
    error = diagnose(255, [Complaint(None, "update failed"), Complaint("ConfigMap/a", text)], "", ())
    assert type(error) is EngineUnavailable


def test_a_webhook_that_cannot_be_called_blocks_the_object() -> None:
    """The API server has answered, and quotes its own request."""
    text = 'Internal error occurred: failed calling webhook: Post "https://w/": x509: expired'
    error = diagnose(255, [Complaint(None, "update failed"), Complaint("ConfigMap/a", text)], "", ())
    assert type(error) is ApplyBlocked


def test_credentials_of_the_environment_are_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setenv("VAULT_TOKEN", "hvs.CAESIJ")
    stderr = "operation error S3: PutObject, wJalrXUtnFEMI and hvs.CAESIJ are wrong"
    assert "[secret] and [secret] are wrong" in diagnose(255, (), stderr, ()).message


def test_the_end_of_the_etcd_of_the_api_server_is_not_the_end_of_the_provider() -> None:
    text = "the Kubernetes API server reported: rpc error: code = Unavailable desc = error reading from server: EOF"
    assert not isinstance(diagnose(255, [Complaint("ConfigMap/a", text)], "", ()), ProviderEnded)


def test_a_credential_is_masked_whole_although_a_stack_has_a_part_of_it_as_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "begin-middle-end")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=k")
    error = diagnose(255, (), "bad: begin-middle-end, AccountName=a;AccountKey=k", ("middle",))
    assert not {"begin", "end", "AccountKey"} & set(re.findall(r"\w+", str(error)))
