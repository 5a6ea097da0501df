"""Has itself greeted once a second; counts how that went in /metrics, and shows the last result in its Jazz data."""

import asyncio

from prometheus_client import Counter

from reside.model.errors import NotAllowed, ResideError
from reside.replica import Context, Replica

CALLS = Counter("caller_calls_total", "Calls of greet.", ["outcome"])
caller = Replica()


@caller.main
async def main(context: Context) -> None:
    """Call and count for ever."""
    shown = await context.node.unique_map(context.public, "last-call")  # everyone can read it
    while True:
        try:
            greeter = await context.peer("greeting")  # the requirement's key in the manifest
            result = {"outcome": "ok", **await greeter.call("greet", {"name": context.name})}
        except ResideError as error:
            result = {"outcome": "refused" if isinstance(error, NotAllowed) else "failed", "message": str(error)}
        CALLS.labels(result["outcome"]).inc()
        if result != shown.get("result"):
            shown.set("result", result)
        await asyncio.sleep(1)


if __name__ == "__main__":
    caller.launch()
