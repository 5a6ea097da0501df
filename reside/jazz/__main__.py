"""The command line of the package: `python -m reside.jazz inspect URL ID` and `python -m reside.jazz serve`.

Exit codes: 0 success, 1 other failure, 2 wrong arguments or credentials, 3 value not found, 4 server unreachable, or
address of `serve` not available.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from reside.jazz.errors import InvalidCredentials, JazzError, JazzTimeout, JazzUnavailable, ValueNotFound
from reside.jazz.groups.account import Credentials
from reside.jazz.inspect import Report, inspect_value, render, render_json
from reside.jazz.node import Node
from reside.jazz.server.command import serve_until_signal

_EXITS: Final[tuple[tuple[type[JazzError], int], ...]] = (
    (InvalidCredentials, 2),
    (ValueNotFound, 3),
    (JazzUnavailable, 4),
    (JazzTimeout, 4),
)
_OTHER_FAILURE: Final = 1
_PORTS: Final = range(2**16)
_ID_NAMES: Final = ("accountId", "accountID", "account_id")
_SECRET_NAMES: Final = ("agentSecret", "accountSecret", "agent_secret")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the command-line arguments; None takes those of the process.

    Returns:
        the exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except JazzError as error:
        sys.stderr.write(f"jazz: {error}\n")
        return next((code for kind, code in _EXITS if isinstance(error, kind)), _OTHER_FAILURE)
    return 0


def _run_inspect(options: argparse.Namespace) -> None:
    credentials = _credentials(options.credentials, os.environ)
    report = asyncio.run(_inspect(options.url, options.id, credentials, options.timeout))
    sys.stdout.write(render_json(report) if options.json else render(report))


def _run_serve(options: argparse.Namespace) -> None:
    asyncio.run(serve_until_signal(options.host, options.port, options.db))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reside.jazz", description="A Jazz client.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_inspect(commands)
    _add_serve(commands)
    return parser


def _add_inspect(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    inspect = commands.add_parser(
        "inspect",
        help="print a value, its group, its history, and why each transaction counts or does not",
        description="Prints a value, its group and its history; for each transaction whether it counts, or why not.",
        epilog=(
            "Credentials: a JSON file with accountId and agentSecret, or JAZZ_ACCOUNT_ID and JAZZ_AGENT_SECRET in the"
            " environment. Without them, a temporary account is used: it sees the author and time of each transaction,"
            " and content that everyone may read."
        ),
    )
    inspect.add_argument("url", metavar="URL", help="the sync server, ws://… or wss://…")
    inspect.add_argument("id", metavar="ID", help="the value, co_z…")
    inspect.add_argument(
        "--credentials",
        type=Path,
        metavar="FILE",
        help="JSON file with the credentials of the account that reads the value",
    )
    inspect.add_argument("--json", action="store_true", help="print JSON")
    inspect.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="default 30")
    inspect.set_defaults(run=_run_inspect)


def _add_serve(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    serve = commands.add_parser(
        "serve",
        help="run a sync server for development",
        description="Runs a sync server for development until SIGINT or SIGTERM. It checks signatures, but no roles.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="the address to listen on, default 127.0.0.1")
    serve.add_argument("--port", type=_port, default=4200, help="default 4200; 0 takes any free port")
    serve.add_argument(
        "--db", type=Path, metavar="FILE", help="SQLite file that keeps the values; without it they are lost at the end"
    )
    serve.set_defaults(run=_run_serve)


def _port(text: str) -> int:
    number = int(text) if text.isdecimal() else _PORTS.stop
    if number not in _PORTS:
        raise argparse.ArgumentTypeError(f"{text} is not a port number")
    return number


async def _inspect(url: str, co_id: str, credentials: Credentials, timeout: float) -> Report:  # noqa: ASYNC109 - as Node.load
    async with Node(url, credentials, connect_timeout=timeout) as node:
        return await inspect_value(node, co_id, timeout=timeout)


def _credentials(file: Path | None, environment: Mapping[str, str]) -> Credentials:
    """Return the credentials of a file or of the environment; if neither has any, generate new ones.

    Raises:
        InvalidCredentials: they can't be read, are incomplete, or do not belong together.
    """
    if file is not None:
        found = _read(file)
        account_id = next((found[name] for name in _ID_NAMES if name in found), None)
        secret = next((found[name] for name in _SECRET_NAMES if name in found), None)
        where = f"{file} needs the members accountId and agentSecret"
    else:
        account_id, secret = environment.get("JAZZ_ACCOUNT_ID"), environment.get("JAZZ_AGENT_SECRET")
        where = "set both JAZZ_ACCOUNT_ID and JAZZ_AGENT_SECRET, or neither"
        if account_id is None and secret is None:
            return Credentials.generate()
    if not isinstance(account_id, str) or not isinstance(secret, str):
        raise InvalidCredentials(where)
    credentials = Credentials.from_secret(secret)
    if credentials.account_id != account_id:
        raise InvalidCredentials(f"the agent secret belongs to another account than {account_id}")
    return credentials


def _read(file: Path) -> dict[str, object]:
    try:
        found = json.loads(file.read_text())
    except OSError as error:
        raise InvalidCredentials(f"{file} can't be read: {error.strerror}") from None
    except ValueError:
        raise InvalidCredentials(f"{file} is not valid JSON") from None
    if not isinstance(found, dict):
        raise InvalidCredentials(f"{file} must contain a JSON object")
    return found


if __name__ == "__main__":
    sys.exit(main())
