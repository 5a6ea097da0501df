// Loads an image into a ReSide from JavaScript, and lists the replicas.
//
//   npm install cojson@0.20.19 cojson-transport-ws@0.20.19 ws
//   node load.mjs '{"sync": "ws://…", "account": "co_z…", "secret": "…", "alpha": "co_z…", "image": "…"}'
//
// The account needs the permissions to create and approve load requests and to read replicas. Each line of the output
// is a JSON object: the state of the request whenever it changes, then the replicas. docs/model.md describes the data.
import { createHash, randomUUID } from "node:crypto";
import { LocalNode } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { createWebSocketPeer } from "cojson-transport-ws";
import { WebSocket } from "ws";

const CONTRACT = "registry.reside.internal/reside/contracts/alpha.v1";
const settings = JSON.parse(process.argv[2]);
const crypto = await NapiCrypto.create();
const node = await LocalNode.withLoadedAccount({
  accountID: settings.account,
  accountSecret: settings.secret,
  sessionID: crypto.newRandomSessionID(settings.account),
  crypto,
  peers: [await connect(settings.sync)],
});

async function connect(url) {
  const websocket = new WebSocket(url);
  await new Promise((resolve, reject) => websocket.once("open", resolve).once("error", reject));
  return createWebSocketPeer({ id: "server", websocket, role: "server" });
}

async function load(id) {
  const value = await node.load(id);
  if (value === "unavailable") throw new Error(`${id} can't be loaded`);
  return value;
}

const sha256 = (text) => createHash("sha256").update(text).digest("hex");

// A bound request token: valid once, for this call, and for one process of the receiver.
function sign(path, instance, body) {
  const fields = [
    settings.account,
    String(Date.now()),
    crypto.getAgentID(settings.secret),
    randomUUID(),
    settings.alpha,
    "POST",
    sha256(`${path}#${instance}`),
    sha256(body),
  ];
  const signature = crypto.sign(crypto.getAgentSignerSecret(settings.secret), ["Jazz-Bound", ...fields]);
  return `Jazz-Bound ${[signature, ...fields].join("~")}`;
}

let instance = "";

async function call(method, content) {
  const path = `/replicas/alpha/rpc/${CONTRACT}/${method}`;
  const body = JSON.stringify(content);
  for (;;) {
    const headers = { authorization: sign(path, instance, body), "reside-instance": instance };
    const response = await fetch(endpoint + path, { method: "POST", body, headers });
    const answer = await response.json();
    if (response.ok) return answer;
    if (response.status !== 421) throw new Error(`${method}: ${answer.error.message}`);
    instance = answer.instance; // the call has reached another process: sign it for this one
  }
}

// Resolves with what `look` returns once that is not undefined; `look` sees each new state of the value.
function until(value, look) {
  return new Promise((resolve, reject) => {
    const unsubscribe = value.subscribe((state) => {
      try {
        const found = look(state);
        if (found === undefined) return;
        resolve(found);
      } catch (error) {
        reject(error);
      }
      queueMicrotask(() => unsubscribe());
    });
  });
}

function show(line) {
  console.log(JSON.stringify(line));
}

const alpha = await load(settings.alpha);
const profile = await load(alpha.get("profile"));
const endpoint = profile.get("endpoints")[settings.access ?? "internal"];
const contracts = profile.get("contracts");
const identity = Object.keys(contracts).find((name) => name.endsWith("/contracts/alpha.v1")); // under the cluster's repository
const root = await load(contracts[identity]);

const group = node.createGroup();
group.addMember(alpha, "reader");
const wish = group.createMap({ image: settings.image });
await node.syncManager.waitForAllCoValuesSync(20_000);

const created = await call("create-load-request", { wish: wish.id });
const request = await load(created.loadRequest);
await until(request, (state) => (state.get("status") === "validating" ? undefined : state));
const current = request.core.getCurrentContent();
show({ request: created.id, status: current.get("status"), error: current.get("errorMessage") });
if (current.get("status") === "requires-approval") {
  await call("approve-load-request", { id: created.id, revision: current.get("revision") });
  const version = await until(request, (state) => {
    if (state.get("status") === "invalid") throw new Error(state.get("errorMessage"));
    return state.get("version");
  });
  show({ request: created.id, version });
}

const replicas = await Promise.all([...(await load(root.get("replicas"))).asArray()].map(load));
show({ replicas: replicas.map((replica) => ({ id: replica.get("id"), name: replica.get("name") })) });
process.exit(0);
