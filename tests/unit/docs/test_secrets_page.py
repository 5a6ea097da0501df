"""The manifest and the program in docs/secrets.md are those of a replica that runs a program with a secret."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from reside.model.manifest import ReplicaManifest
from reside.model.secret_contract import READ_SECRET, SECRET_CONTRACT
from reside.replica import Replica

if TYPE_CHECKING:
    from reside.replica.declaration import MainFunction

PAGE = (Path(__file__).parents[3] / "docs" / "secrets.md").read_text()


def fence(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_requirement_names_the_contract_and_the_secret() -> None:
    replica = {
        "type": "replica",
        "identity": "registry.reside.internal/examples/server",
        "info": {"name": "server", "class": "long-running", "exclusive": False, "scalable": False},
    }
    (requirement,) = ReplicaManifest.model_validate(replica | yaml.safe_load(fence("yaml"))).requirements.values()
    (permission,) = requirement.permissions
    assert (requirement.identity, permission.name) == (SECRET_CONTRACT, READ_SECRET)
    assert permission.instance_id == "database-password"


@pytest.mark.anyio
async def test_the_program_runs_with_the_secret_in_its_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    launched: list[Replica] = []

    def launch(replica: Replica) -> None:
        launched.append(replica)

    monkeypatch.setattr(Replica, "launch", launch)
    file = tmp_path / "main.py"
    file.write_text(fence("python"))
    runpy.run_path(str(file))
    (server,) = launched
    ran: list[tuple[list[str], dict[str, str]]] = []

    async def run_program(_context: object, command: list[str], variables: dict[str, str]) -> int:
        ran.append((command, variables))
        return 3

    main: MainFunction | None = server.declaration.main
    assert main is not None
    monkeypatch.setitem(main.__globals__, "run_program", run_program)  # type: ignore[attr-defined] # it is a function
    with pytest.raises(RuntimeError, match="exit code 3"):
        await main(None)  # type: ignore[arg-type] # the replacement uses no context
    assert ran == [(["/app/server"], {"DATABASE_PASSWORD": "database-password"})]
