"""`python -m reside.jazz`: its errors for wrong arguments, wrong credentials and no server."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.jazz_controlled_nodes import DetachedNode, registered

from reside.jazz import Credentials
from reside.jazz.__main__ import main
from reside.jazz.inspect import OwnerReport, Report, TransactionReport, inspect_value, render, render_json

UNKNOWN = "co_z11111111111111111111111111"
NOWHERE = "ws://127.0.0.1:9"
ONE, OTHER = Credentials.generate(), Credentials.generate()


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ([NOWHERE, UNKNOWN, "--timeout", "0.1"], {}, (4, "no connection to the sync server ws://127.0.0.1:9")),
        (["nonsense", UNKNOWN], {}, (4, "not the URL of a sync server: nonsense")),
        ([NOWHERE, UNKNOWN], {"JAZZ_ACCOUNT_ID": ONE.account_id}, (2, "JAZZ_AGENT_SECRET, or neither")),
        ([NOWHERE, UNKNOWN], {"JAZZ_AGENT_SECRET": ONE.agent_secret}, (2, "JAZZ_AGENT_SECRET, or neither")),
        (
            [NOWHERE, UNKNOWN],
            {"JAZZ_ACCOUNT_ID": ONE.account_id, "JAZZ_AGENT_SECRET": OTHER.agent_secret},
            (2, f"belongs to another account than {ONE.account_id}"),
        ),
        ([NOWHERE, UNKNOWN], {"JAZZ_ACCOUNT_ID": "x", "JAZZ_AGENT_SECRET": "y"}, (2, "the agent secret is malformed")),
    ],
)
def test_failures_say_what_is_wrong_and_have_their_own_codes(
    arguments: list[str],
    environment: dict[str, str],
    expected: tuple[int, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, message = expected
    assert main(["inspect", *arguments]) == code
    printed = capsys.readouterr()
    assert (printed.out, message in printed.err) == ("", True), printed.err
    assert OTHER.agent_secret not in printed.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "can't be read: No such file"),
        ("{", "is not valid JSON"),
        ("[]", "must contain a JSON object"),
        ('{"accountId": "co_zX"}', "needs the members accountId and agentSecret"),
        (json.dumps({"accountID": ONE.account_id, "accountSecret": ONE.agent_secret}), "no connection"),
        (json.dumps({"account_id": ONE.account_id, "agent_secret": ONE.agent_secret}), "no connection"),
    ],
    # Not derived from the content, which differs in every process and is secret.
    ids=["no file", "no JSON", "no object", "no secret", "as a worker's", "in Python's names"],
)
def test_a_file_of_credentials_is_read_or_the_reason_reported(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "credentials.json"
    if content is not None:
        file.write_text(content)
    code = main(["inspect", NOWHERE, UNKNOWN, "--timeout", "0.1", "--credentials", str(file)])
    printed = capsys.readouterr().err
    assert (code, message in printed) == (4 if message == "no connection" else 2, True), printed
    assert ONE.agent_secret not in printed


@pytest.mark.parametrize("arguments", [[], ["inspect"], ["inspect", NOWHERE], ["look", NOWHERE, UNKNOWN]])
def test_wrong_arguments_end_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m reside.jazz" in capsys.readouterr().err


def test_a_report_is_rendered_in_lines() -> None:
    common: dict[str, Any] = {"session": "co_zA_session_zS", "author": "co_zA", "made_at": "2026", "meta": None}
    long = TransactionReport(
        **common, index=0, role="admin", privacy="private", outcome="valid", reason=None, changes=["x" * 200]
    )
    closed = TransactionReport(
        **common, index=1, role=None, privacy="trusting", outcome="unreadable", reason="no key", changes=None
    )
    group = OwnerReport("co_zG", "my group", "group", None, {"co_zA": "admin"}, {"co_zP": "extend"})
    header = {"uniqueness": "name"}
    report = Report("co_zM", "map", header, group, {"a": 1}, (long, closed), ("a log does not verify",))
    text = render(report)
    for line in (
        "co_zM  map",
        '  unique   "name"',
        '  owner    group co_zG "my group"',
        "  my role  none",
        "  member   co_zA admin",
        "  extends  co_zP extend",
        "  note     a log does not verify",
        "transactions: 2, of which 1 count",
        "  unreadable 2026  trusting co_zA (no role)",
        "             zS/1  (can't be read)",
        "             because no key",
    ):
        assert line in text.splitlines()
    assert "… (204 characters)" in text
    assert json.loads(render_json(report)) == json.loads(json.dumps(asdict(report)))
    assert render_json(report) == json.dumps(asdict(report), indent=2) + "\n"
    of_itself = Report("co_zG", "group", {"createdAt": "2026"}, group, {}, (), ())
    assert '  name     "my group"' in render(of_itself).splitlines()


@pytest.mark.anyio
async def test_deeply_nested_content_is_shown() -> None:
    node = await registered(DetachedNode())
    deep: Any = ["the end"]
    for _ in range(1000):
        deep = [deep]
    value = node.create_group().create_map({"deep": deep})
    report = await inspect_value(node, value.id)
    for text in (render(report), render_json(report)):
        assert "the end" in text
        assert text.count("[") > 1000
