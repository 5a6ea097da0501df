"""Call the greeter once a second, count the outcomes in /metrics, and publish the last result in Jazz."""

import asyncio

from prometheus_client import Counter

from reside.model.errors import NotAllowed, ResideError
from reside.replica import Context, Replica

CALLS = Counter("caller_calls_total", "Calls of greet.", ["outcome"])
caller = Replica()


@caller.main
async def main(context: Context) -> None:
    """Call and count until cancelled."""
    published = await context.node.unique_map(context.public, "last-call")  # everyone can read it
    while True:
        try:
            greeter = await context.peer("greeting")  # the requirement's key in the manifest
            result = {"outcome": "ok", **await greeter.call("greet", {"name": context.name})}
        except ResideError as error:
            result = {"outcome": "refused" if isinstance(error, NotAllowed) else "failed", "message": str(error)}
        CALLS.labels(result["outcome"]).inc()
        if result != published.get("result"):
            published.set("result", result)
        await asyncio.sleep(1)


if __name__ == "__main__":
    caller.launch()
