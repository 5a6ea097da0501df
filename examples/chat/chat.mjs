// A chat over Jazz: `node chat.mjs NAME ID` joins the chat that chat.py began. Each line of stdin is sent, each message of
// the others is printed.
import { createInterface } from "node:readline";
import { LocalNode } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { createWebSocketPeer } from "cojson-transport-ws";
import { WebSocket } from "ws";

const [name, id] = process.argv.slice(2);
const websocket = new WebSocket(process.env.JAZZ ?? "ws://127.0.0.1:4200");
await new Promise((resolve, reject) => websocket.once("open", resolve).once("error", reject));
const { node, accountID } = await LocalNode.withNewlyCreatedAccount({
  creationProps: { name },
  crypto: await NapiCrypto.create(),
  peers: [createWebSocketPeer({ id: "server", websocket, role: "server" })],
});

const chat = await node.load(id);
if (chat === "unavailable") throw new Error(`${id} is not on the server`);
const shown = new Set();
chat.subscribe((feed) => {
  for (const session of feed.sessions()) {
    if (session.startsWith(accountID)) continue;
    for (const { tx, value } of feed.itemsIn(session)) {
      const place = `${tx.sessionID} ${tx.txIndex}`;
      if (!shown.has(place)) console.log(value);
      shown.add(place);
    }
  }
});

for await (const line of createInterface({ input: process.stdin })) chat.push(`${name}: ${line}`);
await node.syncManager.waitForAllCoValuesSync();
process.exit(0);
