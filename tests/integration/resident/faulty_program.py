"""A program on the resident engine in a separate process, for tests that kill, interrupt or abandon it.

`python faulty_program.py DOCUMENT`: one update of a stack of components. After the first component the program prints
`middle` and then, as the document says, hangs (`hang`) or ends its process (`die`). The last line is the result of the
update: class and text of the error, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pulumi
from pulumi.automation import LocalWorkspace, Stack
from pulumi.automation.errors import CommandError

from reside.resident import ResidentCommand, ResidentSettings


def main() -> None:
    """Run the update that the document on the command line describes."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run as a shell's background job
    document: dict[str, Any] = json.loads(sys.argv[1])

    def program() -> None:
        first = pulumi.ComponentResource("test:index:Alone", "first", None)

        def middle(_urn: str) -> None:
            print("middle", flush=True)  # noqa: T201 - the test reads it
            if document["then"] == "die":
                os._exit(9)
            threading.Event().wait()

        pulumi.ComponentResource("test:index:Alone", "second", {"after": first.urn.apply(middle)})

    settings = ResidentSettings(engine=document["engine"], folder=Path(document["folder"]))
    workspace = LocalWorkspace(
        work_dir=document["work_dir"], pulumi_command=ResidentCommand(settings), env_vars=document["environment"]
    )
    stack = Stack.select(document["stack"], workspace)
    ended: list[str] = ["succeeded", ""]
    try:
        stack.up(program=program)
    except CommandError as error:
        ended = [type(error).__name__, str(error)]
    except KeyboardInterrupt:
        ended = ["KeyboardInterrupt", ""]
    print(json.dumps(ended), flush=True)  # noqa: T201 - the test reads it
    os._exit(0)  # the program's thread hangs


if __name__ == "__main__":
    main()
