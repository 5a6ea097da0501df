"""Greet callers that have the permission `greet`."""

from greeting import CONTRACT, GreetBody, GreetReturns

from reside.replica import Call, Replica

VERSION = 1

greeter = Replica(CONTRACT)


@greeter.method(CONTRACT.identity, "greet")
async def greet(call: Call, body: GreetBody) -> GreetReturns:
    """Handle the method `greet`."""
    call.require("greet")
    return GreetReturns(message=f"Hello, {body.name}", version=VERSION)


if __name__ == "__main__":
    greeter.launch()
