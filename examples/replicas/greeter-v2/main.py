"""Version 2 of the greeter, with another message. It can replace version 1: identity and info are the same."""

from greeting import CONTRACT, GreetBody, GreetReturns

from reside.replica import Call, Replica

VERSION = 2

greeter = Replica(CONTRACT)


@greeter.method(CONTRACT.identity, "greet")
async def greet(call: Call, body: GreetBody) -> GreetReturns:
    """Handle the method `greet`."""
    call.require("greet")
    return GreetReturns(message=f"Good day, {body.name}", version=VERSION)


if __name__ == "__main__":
    greeter.launch()
