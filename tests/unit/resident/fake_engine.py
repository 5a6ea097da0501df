"""A fake `reside-engine`. Each command's first word names what it does; unit tests run it as a program.

It implements the protocol of reside/resident/wire.py and the flags of `reside-engine serve`.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import threading
from pathlib import Path
from typing import Any

SCRIPT = "#!{python}\nimport runpy\nrunpy.run_path({path!r}, run_name='__main__')\n"


def fake_engine(folder: Path) -> str:
    """Write the program; its path is for `ResidentSettings.engine`."""
    program = folder / "fake-engine"
    program.write_text(SCRIPT.format(python=sys.executable, path=__file__))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


class Session:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lines = connection.makefile("r", encoding="utf-8")

    def say(self, **message: Any) -> None:
        """Send a message."""
        self.connection.sendall(json.dumps(message).encode() + b"\n")

    def serve(self) -> None:
        """Respond to the one request."""
        request = json.loads(self.lines.readline())
        verb, *words = [argument for argument in request["args"] if argument != "--non-interactive"]
        getattr(self, verb.strip("-").replace("-", "_"))(words, request)
        self.connection.close()

    def echo(self, words: list[str], request: dict[str, Any]) -> None:
        """Write each further word to standard output, or to standard error after `err:`."""
        self.say(begun=True)
        for word in words:
            stream, text = ("stderr", word[4:]) if word.startswith("err:") else ("stdout", word)
            self.say(**{stream: text})
        self.say(exit=0)

    def fail(self, words: list[str], request: dict[str, Any]) -> None:
        """Write these words as an error."""
        self.say(begun=True)
        self.say(stderr=words[0])
        self.say(exit=255)

    def tell(self, words: list[str], request: dict[str, Any]) -> None:
        """Print the call: request, process, environment."""
        self.say(begun=True)
        self.say(stdout=json.dumps({**request, "pid": os.getpid(), "argv": sys.argv, "env": dict(os.environ)}))
        self.say(exit=0)

    def engine_status(self, words: list[str], request: dict[str, Any]) -> None:
        """Print the status, as every engine does."""
        self.echo([json.dumps({"pid": os.getpid(), "version": "v3.259.0"})], request)

    def version(self, words: list[str], request: dict[str, Any]) -> None:
        """Return the command to the stock command line."""
        self.say(unserved="as the test wants it")

    def leave(self, words: list[str], request: dict[str, Any]) -> None:
        """Delete the file and end without a response if it exists; otherwise respond."""
        marker = Path(words[0])
        if marker.exists():
            marker.unlink()
            os._exit(0)
        self.echo(["answered"], request)

    def refuse(self, words: list[str], request: dict[str, Any]) -> None:
        """Respond with `retry` as often as the file has characters."""
        marker = Path(words[0])
        left = marker.read_text()
        marker.write_text(left[1:])
        if left:
            self.say(retry="draining")
        else:
            self.echo(["answered"], request)

    def die(self, words: list[str], request: dict[str, Any]) -> None:
        """End in the middle of a line."""
        self.say(begun=True)
        self.say(stdout="half a li")
        os._exit(3)

    def wait(self, words: list[str], request: dict[str, Any]) -> None:
        """Wait for this number of interrupts, or until the client disconnects."""
        self.say(begun=True)
        self.say(stdout="waiting\n")
        for _ in range(int(words[0])):
            line = self.lines.readline()
            if not line:
                return
            self.say(stdout=json.loads(line)["signal"] + "\n")
        self.say(exit=1)


def main() -> None:
    """Serve until standard input ends (lifetime `parent`) or until killed."""
    flags = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    fault = os.environ.get("FAKE_ENGINE_FAULT")
    if fault == "ends":
        sys.stderr.write("panic: no such backend\n")
        sys.exit(2)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    draft = f"{flags['--socket']}.{os.getpid()}"
    listener.bind(draft)
    listener.listen(64)
    Path(draft).rename(flags["--socket"])
    if fault == "hangs":
        threading.Event().wait()
    os.write(int(flags["--ready-fd"]), b"ready\n")
    os.close(int(flags["--ready-fd"]))
    if flags["--lifetime"] == "parent":
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=Session(connection).serve, daemon=True).start()


if __name__ == "__main__":
    main()
