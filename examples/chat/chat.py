"""A chat over Jazz: `python chat.py NAME` begins one and prints its id, `python chat.py NAME ID` joins it.

Each line of stdin is sent, each message of the others is printed. chat.mjs is the same program in JavaScript.
"""

import asyncio
import os
import sys

from reside.jazz import EVERYONE, CoFeed, Credentials, Node

URL = os.environ.get("JAZZ", "ws://127.0.0.1:4200")


async def main(name: str, chat_id: str | None = None) -> None:
    """Begin a chat or join one, until the end of stdin."""
    async with Node(URL, Credentials.generate()) as node:
        await node.register(name)
        chat = await begin(node) if chat_id is None else await node.load_feed(chat_id)
        showing = asyncio.create_task(show(chat, node.account_id))
        while line := await asyncio.to_thread(sys.stdin.readline):
            chat.push(f"{name}: {line.strip()}")
            await chat.uploaded()
        showing.cancel()


async def begin(node: Node) -> CoFeed:
    """Create a chat in which everyone who knows its id may read and write."""
    group = node.create_group()
    await group.add_member(EVERYONE, "writer")
    chat = group.create_feed()
    await node.flush()
    print(chat.id, flush=True)
    return chat


async def show(chat: CoFeed, me: str) -> None:
    """Print each message of the others once."""
    shown = set()
    async with chat.watch() as changes:
        async for feed in changes:
            for entry in feed:
                place = (entry.session, entry.index)
                if entry.by != me and place not in shown:
                    shown.add(place)
                    print(entry.value, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
