"""Greet callers that have the permission `greet`."""

from pathlib import Path

from reside.replica import Call, Json, Replica, load_contract

CONTRACT = load_contract(Path(__file__).with_name("greeting.v1.yaml"))
VERSION = 1

greeter = Replica(CONTRACT)


@greeter.method(CONTRACT.identity, "greet")
async def greet(call: Call) -> Json:
    """Handle the method `greet`: `{name}` → `{message, version}`."""
    call.require("greet")
    return {"message": f"Hello, {call.body.get('name', 'stranger')}", "version": VERSION}


if __name__ == "__main__":
    greeter.launch()
