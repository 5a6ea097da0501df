"""Greets whoever was granted the permission ``greet``. Version 2 is politer."""

import os
from pathlib import Path

from reside.replica import Call, Json, Replica, load_contract

CONTRACT = load_contract(Path(__file__).with_name("greeting.v1.yaml"))
VERSION = int(os.environ.get("GREETER_VERSION", "1"))
GREETING = {1: "Hello", 2: "Good day"}[VERSION]

greeter = Replica(CONTRACT)


@greeter.method(CONTRACT.identity, "greet")
async def greet(call: Call) -> Json:
    """``{name}`` → ``{message, version}``."""
    call.require("greet")
    return {"message": f"{GREETING}, {call.body.get('name', 'stranger')}", "version": VERSION}


if __name__ == "__main__":
    greeter.launch()
