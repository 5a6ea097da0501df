// The Jazz sync server of a ReSide cluster: the official cojson package, SQLite through node:sqlite, one HTTP port.
//
//   HOST            address to listen on (default 127.0.0.1)
//   PORT            port (default 4200; 0: any free one, which the "listening" log line contains)
//   DB              SQLite file (default jazz.sqlite in the working folder); ":memory:" stores nothing
//   MODE            open (default): store and relay whatever is signed, as the official server does; members: only what
//                   could count for readers by the roles of its authors (gate.mjs)
//   ERASE_S         seconds between two erasures of the content of deleted values (default 60)
//   HOLD_S          seconds that content may wait for a value that it depends on (default 30)
//   QUOTA_MESSAGES  messages that a connection may send in a minute (default 1,000,000); 0: any number, here and below
//   QUOTA_BYTES     characters (default 4 GiB)
//   QUOTA_VALUES    new values (default 250,000)
//   QUOTA_SESSIONS  new sessions (default 500,000)
//   PROOF           none (default); required: a client has to prove its account in the address (proof.mjs)
//   PROOF_HOSTS     with PROOF=required: the names, separated by commas, by which clients reach this server
//
// GET /healthz answers 200 while the server takes connections and its database answers a query, 503 otherwise.
// GET /metrics answers with counters in the text format of Prometheus.
// SIGTERM and SIGINT shut it down gracefully: no new connections, sockets closed, storage drained, database closed.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { LocalNode, getSqliteStorage } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { createWebSocketPeer } from "cojson-transport-ws";
import { WebSocketServer } from "ws";
import { compact, erasableSessions } from "./compaction.mjs";
import { Connection, countContent } from "./connection.mjs";
import { openDatabase } from "./database.mjs";
import { Dependencies } from "./dependencies.mjs";
import { Gate } from "./gate.mjs";
import { log, redirectConsole } from "./log.mjs";
import { Metrics } from "./metrics.mjs";
import { ProofCheck } from "./proof.mjs";
import { InvalidSetting, readSettings } from "./settings.mjs";
import { MessageCheck } from "./shape.mjs";
import { guarded, sendAfterStoring } from "./websockets.mjs";

const PING_MS = 1500;
const GRACE_MS = 5000;
const ERASE_BUDGET_MS = 100;
const ERASE_PAUSE_MS = 500; // so that an erasure of many values takes at most a third of the time

redirectConsole();

// node:sqlite warns that it is experimental.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (warning.name !== "ExperimentalWarning") log("warning", String(warning));
});

const settings = settingsOrExit();
const crypto = await NapiCrypto.create();
const shape = new MessageCheck(crypto);
const proofs = settings.proof === "required" ? new ProofCheck(crypto, shape, settings.proofHosts) : undefined;
const metrics = new Metrics();
const connections = new Map();

const secret = crypto.newRandomAgentSecret();
const node = new LocalNode(secret, crypto.newRandomSessionID(crypto.getAgentID(secret)), crypto);
const database = openDatabase(settings.db);
const storage = getSqliteStorage(database);
database.dropRedundantIndexes();
node.setStorage(storage);
let erasing = setTimeout(eraseSome, settings.eraseMs);
const gate = settings.mode === "members" ? new Gate(node, connections, settings.holdMs, refused, (change) => metrics.add("held_values", change)) : undefined;
if (!gate) {
  countContent(node, connections);
  new Dependencies(node, (peer, reason, fields) => refused(reason, { peer, ...fields }), { waitMs: settings.holdMs });
}

let stopping = false;
let uncompacted = [];

// What does not fit into the time of one erasure goes on after a pause. Otherwise a server to which many values are
// deleted would erase ever later.
function eraseSome() {
  erasing = setTimeout(eraseSome, erase() ? Math.min(ERASE_PAUSE_MS, settings.eraseMs) : settings.eraseMs);
}

// A deleted value keeps only the marker of its deletion. Content and keys of others are not in the file any more, nor in
// its log of recent writes. Returns whether there is more to erase.
function erase() {
  try {
    const deleted = database.get("SELECT 1 AS one FROM deletedCoValues WHERE status = 0 LIMIT 1", []) !== undefined;
    if (!deleted && uncompacted.length === 0) return false;
    uncompacted = [...new Set([...uncompacted, ...erasableSessions(database)])].sort((a, b) => a - b);
    const { hasMore } = deleted ? storage.eraseDeletedCoValuesOnceBudgeted(ERASE_BUDGET_MS) : { hasMore: false };
    uncompacted = compact(database, uncompacted);
    database.truncateLog();
    return hasMore || uncompacted.length > 0;
  } catch (error) {
    log("error", "deleted values can't be erased", { error: String(error) });
    return false;
  }
}

function settingsOrExit() {
  try {
    return readSettings(process.env);
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    log("error", error.message, error.fields);
    return process.exit(2);
  }
}

function refused(reason, fields) {
  metrics.refused(reason);
  log("warning", "refused", { reason, ...fields });
}

const server = createServer((request, response) => {
  const answer = (code, text) => void response.writeHead(code, { "content-type": "text/plain" }).end(text);
  if (request.url === "/metrics") return answer(200, metrics.text());
  if (request.url !== "/healthz") return answer(404, "not found\n");
  let healthy = !stopping;
  try {
    database.get("SELECT 1 AS one", []);
  } catch (error) {
    healthy = false;
    log("error", "the database does not answer", { error: String(error) });
  }
  return answer(healthy ? 200 : 503, healthy ? "ok\n" : "unhealthy\n");
});

// The address of a connection has no place in the log: it contains the proof.
function verifyClient({ req }, accept) {
  const proven = proofs?.verify(req.url, Date.now()) ?? {};
  if (!proven.reason) {
    req.account = proven.account;
    return accept(true);
  }
  refused(proven.reason, { address: req.socket.remoteAddress });
  return accept(false, 401, "Unauthorized");
}

const sockets = new WebSocketServer({ server, perMessageDeflate: false, maxPayload: 256 * 1024 * 1024, verifyClient });

// Passes on to cojson only what has the shape of a message.
function admitOnly(peer, connection) {
  const push = peer.incoming.push.bind(peer.incoming);
  const refuse = (reason, fields) => refused(reason, { peer: peer.id, ...fields });
  peer.incoming.push = (message) => {
    if (message === "Disconnected") return push(message);
    metrics.add("messages_total");
    if (!connection.takes("messages")) return undefined;
    const checked = shape.admitted(message, refuse);
    if (!checked) return undefined;
    connection.names(checked.id);
    return push(checked);
  };
}

sockets.on("connection", (websocket, request) => {
  // Each connection has a random peer id, because ids made of address and time are not unique.
  const id = `client_${randomUUID()}`;
  const connection = new Connection(id, node, websocket, settings.quotas, refused);
  connections.set(id, connection);
  metrics.add("connections");
  metrics.add("connections_total");
  sendAfterStoring(websocket);
  websocket.on("error", (error) => log("warning", "a connection failed", { peer: id, error: String(error) }));
  const pings = setInterval(() => {
    if (websocket.readyState === websocket.OPEN) {
      websocket.send(JSON.stringify({ type: "ping", time: Date.now(), dc: "unknown" }));
    }
  }, PING_MS);
  websocket.on("close", () => {
    clearInterval(pings);
    connections.delete(id);
    gate?.disconnected(connection);
    setImmediate(() => connection.forgetNamed()); // cojson stops its own waits first
    metrics.add("connections", -1);
    log("info", "disconnected", { peer: id });
  });
  const takes = (characters) => {
    metrics.add("bytes_total", characters);
    return connection.takes("bytes", characters);
  };
  const peer = createWebSocketPeer({
    id,
    role: "client",
    websocket: guarded(websocket, id, takes),
    expectPings: false,
    batchingByDefault: false,
    deletePeerStateOnClose: true,
  });
  admitOnly(peer, connection);
  node.syncManager.addPeer(peer);
  log("info", "connected", { peer: id, address: request.socket.remoteAddress, account: request.account });
});

// ws forwards the errors of its HTTP server.
sockets.on("error", (error) => {
  log("error", "can't listen", { host: settings.host, port: settings.port, error: String(error) });
  process.exit(1);
});

server.listen(settings.port, settings.host, () => {
  log("info", "listening", { host: settings.host, port: server.address().port, db: settings.db, mode: settings.mode });
});

async function stop(signal) {
  if (stopping) return;
  stopping = true;
  log("info", "stopping", { signal });
  server.close();
  for (const websocket of sockets.clients) websocket.close(1001, "the server stops");
  const force = setTimeout(() => {
    for (const websocket of sockets.clients) websocket.terminate();
  }, GRACE_MS / 2);
  const deadline = setTimeout(() => {
    log("error", "did not stop in time", { ms: GRACE_MS });
    process.exit(1);
  }, GRACE_MS);
  await node.gracefulShutdown();
  clearTimeout(force);
  for (const websocket of sockets.clients) websocket.terminate();
  clearTimeout(erasing);
  database.closeDb();
  clearTimeout(deadline);
  log("info", "stopped");
  process.exit(0);
}

process.on("SIGTERM", () => void stop("SIGTERM"));
process.on("SIGINT", () => void stop("SIGINT"));
