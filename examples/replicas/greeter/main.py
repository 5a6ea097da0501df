"""Greet callers that have the permission `greet`."""

from pathlib import Path

from pydantic import BaseModel

from reside.replica import Call, Replica, load_contract

CONTRACT = load_contract(Path(__file__).with_name("greeting.v1.yaml"))
VERSION = 1

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
    return Greeting(message=f"Hello, {body.name}", version=VERSION)


if __name__ == "__main__":
    greeter.launch()
