"""Version 2 of the greeter, with another message. It can replace version 1: identity and info are the same."""

from pathlib import Path

from pydantic import BaseModel

from reside.replica import Call, Replica, load_contract

CONTRACT = load_contract(Path(__file__).with_name("greeting.v1.yaml"))
VERSION = 2

greeter = Replica(CONTRACT)


class Greet(BaseModel):
    """Body of `greet`."""

    name: str = "stranger"


class Greeting(BaseModel):
    """Response of `greet`."""

    message: str
    version: int


@greeter.method(CONTRACT.identity, "greet")
async def greet(call: Call, body: Greet) -> Greeting:
    """Handle the method `greet`."""
    call.require("greet")
    return Greeting(message=f"Good day, {body.name}", version=VERSION)


if __name__ == "__main__":
    greeter.launch()
