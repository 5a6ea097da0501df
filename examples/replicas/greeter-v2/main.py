"""Version 2 of the greeter, with another message. It can replace version 1: identity and info are the same."""

from pathlib import Path

from reside.replica import Call, Json, Replica, load_contract

CONTRACT = load_contract(Path(__file__).with_name("greeting.v1.yaml"))
VERSION = 2

greeter = Replica(CONTRACT)


@greeter.method(CONTRACT.identity, "greet")
async def greet(call: Call) -> Json:
    """Handle the method `greet`: `{name}` → `{message, version}`."""
    call.require("greet")
    return {"message": f"Good day, {call.body.get('name', 'stranger')}", "version": VERSION}


if __name__ == "__main__":
    greeter.launch()
